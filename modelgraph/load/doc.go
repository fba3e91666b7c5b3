// Package load finds out what a MODEL argument is and calls its reader: a
// model.json, a config.json, a folder as Hugging Face lays it out, a
// safetensors file or index, a graph with measured costs as dnn-partitioning,
// Piper and PipeDream write them, or a name such as Qwen/Qwen2.5-3B, which is
// looked up in the local Hugging Face and ModelScope caches and then among
// the built-in configs. Nothing is ever fetched from a network.
package load
