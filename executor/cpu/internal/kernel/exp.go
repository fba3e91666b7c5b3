package kernel

import "math"

// exp is e^value in fp32.
func exp(value float32) float32 { return float32(math.Exp(float64(value))) }
