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
	// KernelSeconds is what each kernel takes besides its arithmetic.
	KernelSeconds float64 `json:"kernel_seconds,omitzero"`
	// LinkBytesPerSecond is sent to other GPUs, and received, each;
	// CollectiveBytesPerSecond the same in a ring of NCCL, which occupies
	// CollectiveShare of the device's processors as long as it runs.
	LinkBytesPerSecond       float64 `json:"link_bytes_per_second,omitzero"`
	CollectiveBytesPerSecond float64 `json:"collective_bytes_per_second,omitzero"`
	CollectiveShare          float64 `json:"collective_share,omitzero"`
	// HostBytesPerSecond is sent to GPUs of other hosts, and received, each,
	// where no link says otherwise.
	HostBytesPerSecond float64 `json:"host_bytes_per_second,omitzero"`
}

func (r *Rates) sane() bool {
	for _, v := range []float64{r.FP32FLOPS, r.AttentionFLOPS, r.BytesPerSecond, r.KernelSeconds, r.LinkBytesPerSecond, r.CollectiveBytesPerSecond, r.HostBytesPerSecond} {
		if !within(v, 0, 1e21) {
			return false
		}
	}
	return within(r.CollectiveShare, 0, 1)
}

// over lays the rates that are known over others.
func (r Rates) over(base Rates) Rates {
	return Rates{
		FP32FLOPS:                cmp.Or(r.FP32FLOPS, base.FP32FLOPS),
		AttentionFLOPS:           cmp.Or(r.AttentionFLOPS, base.AttentionFLOPS),
		BytesPerSecond:           cmp.Or(r.BytesPerSecond, base.BytesPerSecond),
		KernelSeconds:            cmp.Or(r.KernelSeconds, base.KernelSeconds),
		LinkBytesPerSecond:       cmp.Or(r.LinkBytesPerSecond, base.LinkBytesPerSecond),
		CollectiveBytesPerSecond: cmp.Or(r.CollectiveBytesPerSecond, base.CollectiveBytesPerSecond),
		CollectiveShare:          cmp.Or(r.CollectiveShare, base.CollectiveShare),
		HostBytesPerSecond:       cmp.Or(r.HostBytesPerSecond, base.HostBytesPerSecond),
	}
}
