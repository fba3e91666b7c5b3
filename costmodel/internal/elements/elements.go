// Package elements is the size of one element under a precision, in bytes: of
// weights and of what is computed with them.
package elements

import "github.com/devmap-dev/devmap/costmodel"

// Mixed reports whether compute runs under autocast on fp32 weights.
func Mixed(precision costmodel.Precision) bool {
	return precision == costmodel.BF16Mixed || precision == costmodel.FP16Mixed
}

// Half reports fp16.
func Half(precision costmodel.Precision) bool {
	return precision == costmodel.FP16True || precision == costmodel.FP16Mixed
}

// Weight is the size of one weight, gradient or optimizer state.
func Weight(precision costmodel.Precision) int64 {
	if precision == costmodel.FP32True || Mixed(precision) {
		return 4
	}
	return 2
}

// Compute is the size of one element in matrix products.
func Compute(precision costmodel.Precision) int64 {
	if precision == costmodel.FP32True {
		return 4
	}
	return 2
}

// Stream is the size of one element of the residual stream.
func Stream(precision costmodel.Precision) int64 { return Weight(precision) }
