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
func PrecisionOf(d modelgraph.DType) Precision {
	switch d {
	case modelgraph.F32:
		return FP32True
	case modelgraph.F16:
		return FP16True
	default:
		return BF16True
	}
}

// WithMaster is the precision with fp32 master weights of 16-bit weights.
func (p Precision) WithMaster() Precision {
	switch p {
	case BF16True:
		return BF16Mixed
	case FP16True:
		return FP16Mixed
	default:
		return p
	}
}

// Mixed reports whether compute runs under autocast on fp32 weights.
func (p Precision) Mixed() bool { return p == BF16Mixed || p == FP16Mixed }

// WeightBytes is the size of one weight, gradient or optimizer state.
func (p Precision) WeightBytes() int64 {
	if p == FP32True || p.Mixed() {
		return 4
	}
	return 2
}

// ComputeBytes is the size of one element in matrix products.
func (p Precision) ComputeBytes() int64 {
	if p == FP32True {
		return 4
	}
	return 2
}

// StreamBytes is the size of one element of the residual stream.
func (p Precision) StreamBytes() int64 { return p.WeightBytes() }

// Stored is the size of a tensor once loaded: floating-point tensors are cast
// to the weights' type, quantised ones and those of a fixed type stay.
func (p Precision) Stored(t *modelgraph.Tensor) int64 {
	if p == AsStored || !t.DType.Float() {
		return t.Bytes()
	}
	return t.Numel() * p.WeightBytes()
}
