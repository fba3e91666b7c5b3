//go:build !unix

package safetensors

const openNonblock = 0
