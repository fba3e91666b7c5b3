// Package serve plans a decoder for llama.cpp: the longest context, which device has which blocks,
// and what stays on the host.
package serve
