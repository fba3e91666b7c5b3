// Package hf reads models as Hugging Face lays them out: config.json, alone or with safetensors
// headers next to it.
//
// From the config alone it derives the exact parameter names, shapes and ties that the framework's
// module has (Transformers 5.17), by the rules of the model's family; config files as Transformers
// 4 wrote them are read too. A family fills a [builder]. The defaults of its config class are in
// the table of config classes (table.go), made from Transformers itself, so that a reader names
// fields alone; a decoder is a llama's parts but for what its reader says (parts.go, block.go), and
// register adds it to the table. If a checkpoint is present its tensors are assigned to the
// module's (assign.go), so that sizes come from the files.
package hf
