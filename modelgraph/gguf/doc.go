// Package gguf reads GGUF files, the form of models for llama.cpp: one file, or a set of files that
// gguf-split made.
//
// [Read] checks the headers as llama.cpp does (ggml/src/gguf.cpp, gguf_init_from_reader;
// src/llama-model-loader.cpp), and bounds time and memory for hostile files. It reads no weights.
package gguf
