package costmodel

// Precision is PyTorch Lightning's name for the types of weights and compute.
type Precision string

// The precisions.
const (
	BF16True  Precision = "bf16-true"
	FP16True  Precision = "16-true"
	FP32True  Precision = "32-true"
	BF16Mixed Precision = "bf16-mixed"
	FP16Mixed Precision = "16-mixed"
)

// Mixed reports whether compute runs under autocast on fp32 weights.
func (precision Precision) Mixed() bool { return precision == BF16Mixed || precision == FP16Mixed }

// WeightBytes is the size of one weight, gradient or optimizer state.
func (precision Precision) WeightBytes() int64 {
	if precision == FP32True || precision.Mixed() {
		return 4
	}
	return 2
}

// ComputeBytes is the size of one element in matrix products.
func (precision Precision) ComputeBytes() int64 {
	if precision == FP32True {
		return 4
	}
	return 2
}

// StreamBytes is the size of one element of the residual stream.
func (precision Precision) StreamBytes() int64 { return precision.WeightBytes() }
