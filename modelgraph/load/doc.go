// Package load finds out what a MODEL argument is and calls its reader. MODEL is a model.json, a
// config.json, a folder as Hugging Face lays it out, a safetensors file or index, or an ONNX file.
// It may be a graph with measured costs as dnn-partitioning, Piper and PipeDream write them. A name
// such as Qwen/Qwen2.5-3B is looked up in the local Hugging Face and ModelScope caches, then among
// the built-in configs. Nothing is ever fetched from a network.
package load
