// Package blas is matrix products by cuBLASLt, of CUDA 13, 12 or 11, whichever the
// machine has: the library is opened at run time, nothing of it is needed to build.
// Without the tag cuda it is empty.
package blas
