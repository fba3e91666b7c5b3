package steptime

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
)

// passSeconds is the time of a pass on a device: its kernels run one after the
// other, products at the rate of their type, all else as fast as memory is
// read and written. Rates that are not known take no time.
func passSeconds(d *costmodel.Device, p costmodel.Pass, precision costmodel.Precision) float64 {
	products, attention := d.FLOPS, d.AttentionFLOPS
	if precision.ComputeBytes() == 4 && d.FP32FLOPS > 0 {
		products = d.FP32FLOPS // PyTorch uses TF32 only where it is told to
	}
	if attention <= 0 {
		attention = products
	}
	unaligned := products
	if precision.ComputeBytes() == 2 && d.UnalignedFLOPS > 0 {
		unaligned = d.UnalignedFLOPS
	}
	return over(p.Products, products) + over(p.Unaligned, unaligned) + over(p.Attention, attention) +
		over(p.Traffic, d.BytesPerSecond) + over(p.Strided, cmp.Or(d.StridedBytesPerSecond, d.BytesPerSecond)) + p.Kernels*d.KernelSeconds + p.Profiled
}

// updateSeconds is the time of the optimizer's kernels that read and write so many
// bytes.
func updateSeconds(d *costmodel.Device, bytes float64, precision costmodel.Precision) float64 {
	rate := d.UpdateBytesPerSecond
	if precision.WeightBytes() == 4 {
		rate = d.FP32UpdateBytesPerSecond
	}
	return over(bytes, cmp.Or(rate, d.BytesPerSecond))
}

func over(amount, rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	return amount / rate
}

// issueSeconds is the host's time to issue a forward.
func issueSeconds(d *costmodel.Device, p costmodel.Pass) float64 { return p.Kernels * d.IssueSeconds }

// issueBackSeconds is the host's time to issue a backward: autograd's engine
// calls kernels without Python.
func issueBackSeconds(d *costmodel.Device, p costmodel.Pass) float64 {
	return p.Kernels * d.BackwardIssueSeconds
}
