// Package blas computes matrix products with cuBLASLt of CUDA 13, 12 or 11, whichever the machine
// has. It opens the library at run time, and needs nothing of it to build. Without the tag cuda it
// is empty.
package blas
