// Package hf reads Hugging Face models: config.json, alone or with safetensors headers next to it.
//
// From the config alone it derives the parameter names, shapes and ties of Transformers' module
// (release 5.17), by the rules of the model's family. It also reads config files of Transformers 4.
// A family fills a [builder]. The defaults of its config class are in a table made from
// Transformers (table.go), so a reader only names fields. A decoder starts with a llama's parts,
// and its reader changes some (parts.go, block.go); register adds it to the table. If there is a
// checkpoint, its tensors are assigned to the module's (assign.go), and sizes come from the files.
package hf
