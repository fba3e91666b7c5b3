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
