package costmodel

import "cmp"

// Rates are how fast a device does what is no 16-bit matrix product, as
// achieved, not as printed on its data sheet. 0: unknown.
type Rates struct {
	// FP32FLOPS is the rate of fp32 matrix products without TF32, in FLOP/s.
	FP32FLOPS float64 `json:"fp32_flops,omitzero"`
	// AttentionFLOPS is the rate of the fused attention kernel, in FLOP/s.
	AttentionFLOPS float64 `json:"attention_flops,omitzero"`
	// BytesPerSecond is read and written in memory.
	BytesPerSecond float64 `json:"bytes_per_second,omitzero"`
	// LinkBytesPerSecond is sent to other GPUs, and received, each.
	LinkBytesPerSecond float64 `json:"link_bytes_per_second,omitzero"`
}

func (r *Rates) sane() bool {
	for _, v := range []float64{r.FP32FLOPS, r.AttentionFLOPS, r.BytesPerSecond, r.LinkBytesPerSecond} {
		if !within(v, 0, 1e21) {
			return false
		}
	}
	return true
}

// over lays the rates that are known over others.
func (r Rates) over(base Rates) Rates {
	return Rates{
		FP32FLOPS:          cmp.Or(r.FP32FLOPS, base.FP32FLOPS),
		AttentionFLOPS:     cmp.Or(r.AttentionFLOPS, base.AttentionFLOPS),
		BytesPerSecond:     cmp.Or(r.BytesPerSecond, base.BytesPerSecond),
		LinkBytesPerSecond: cmp.Or(r.LinkBytesPerSecond, base.LinkBytesPerSecond),
	}
}
