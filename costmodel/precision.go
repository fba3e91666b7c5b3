package costmodel

import "github.com/devmap-dev/devmap/modelgraph"

// Precision is PyTorch Lightning's name for the types of weights and compute.
type Precision string

// The precisions. AsStored keeps each tensor's own type.
const (
	AsStored  Precision = "as-stored"
	BF16True  Precision = "bf16-true"
	FP16True  Precision = "16-true"
	FP32True  Precision = "32-true"
	BF16Mixed Precision = "bf16-mixed"
	FP16Mixed Precision = "16-mixed"
)

// PrecisionOf is the true precision of weights of a type.
func PrecisionOf(dtype modelgraph.DType) Precision {
	switch dtype {
	case modelgraph.F32:
		return FP32True
	case modelgraph.F16:
		return FP16True
	default:
		return BF16True
	}
}

// WithMaster is the precision with fp32 master weights of 16-bit weights.
func (precision Precision) WithMaster() Precision {
	switch precision {
	case BF16True:
		return BF16Mixed
	case FP16True:
		return FP16Mixed
	default:
		return precision
	}
}

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

// Stored is the size of a tensor once loaded: floating-point tensors are cast
// to the weights' type, quantised ones and those of a fixed type stay.
func (precision Precision) Stored(tensor *modelgraph.Tensor) int64 {
	if precision == AsStored || !tensor.DType.Float() {
		return tensor.Bytes()
	}
	return tensor.Numel() * precision.WeightBytes()
}
