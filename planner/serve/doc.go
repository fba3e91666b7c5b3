// Package serve plans a decoder for llama.cpp: the longest context, which device has which blocks,
// and which blocks are on the host.
package serve
