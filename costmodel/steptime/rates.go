package steptime

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// passSeconds is the time of a pass on a device, whose kernels run in sequence.
func passSeconds(device *costmodel.Device, pass costmodel.Pass, precision costmodel.Precision) float64 {
	_, all := passTimes(device, &pass, precision)
	return all
}

// passTimes are the seconds of a pass's products, at the rate of their type, and of all kernels. The
// others run at the rates of memory. Unknown rates take no time.
func passTimes(device *costmodel.Device, pass *costmodel.Pass, precision costmodel.Precision) (clocked, all float64) {
	products, attention := device.FLOPS, device.AttentionFLOPS
	if ops.ComputeBytes(precision) == 4 && device.FP32FLOPS > 0 {
		products = device.FP32FLOPS // PyTorch uses TF32 only if it is asked to
	}
	if attention <= 0 {
		attention = products
	}
	unaligned := products
	if ops.ComputeBytes(precision) == 2 && device.UnalignedFLOPS > 0 {
		unaligned = device.UnalignedFLOPS
	}
	kernels := pass.Kernels * device.KernelSeconds
	if device.OperationSeconds > 0 {
		kernels = (pass.Kernels-pass.Fused)*device.KernelSeconds + pass.Operations*(device.OperationSeconds+pass.Rows*device.RowSeconds)
	}
	clocked = over(pass.Products, products) + over(pass.Unaligned, unaligned) + over(pass.Attention, attention)
	return clocked, clocked + over(pass.Traffic, device.BytesPerSecond) + over(pass.Strided, cmp.Or(device.StridedBytesPerSecond, device.BytesPerSecond)) + kernels + pass.Profiled
}

// onOwn is the device with all measured rates of devmap's own engine, if it has any. They go
// together because they distinguish the kernels.
func onOwn(device *costmodel.Device) *costmodel.Device {
	if device.Own.FLOPS == 0 {
		return device
	}
	own := *device
	own.FLOPS, own.Rates = device.Own.FLOPS, device.Own.Rates
	own.OperationSeconds, own.RowSeconds = cmp.Or(own.OperationSeconds, device.OperationSeconds), cmp.Or(own.RowSeconds, device.RowSeconds)
	own.SustainedFLOPS, own.MemoryPower = cmp.Or(own.SustainedFLOPS, device.SustainedFLOPS), cmp.Or(own.MemoryPower, device.MemoryPower)
	return &own
}

// engineSeconds are a unit's times in devmap's engine: by its rates, and as a run measured them.
type engineSeconds struct{ forward, token, recompute, backward, learn, update float64 }

// engineOf returns them for a device of [onOwn].
func engineOf(on *costmodel.Device, work *costmodel.Work, workload *costmodel.Workload) engineSeconds {
	precision := workload.Precision
	out := engineSeconds{forward: passSeconds(on, work.Forward, precision) * cmp.Or(on.ForwardRatio, 1), token: passSeconds(on, work.Token, precision)}
	if workload.Mode == costmodel.Train {
		back := cmp.Or(on.BackwardRatio, 1)
		out.recompute, out.backward = passSeconds(on, work.Recompute, precision)*back, passSeconds(on, work.Backward, precision)*back
		out.learn = passSeconds(on, work.Learn, precision) * cmp.Or(on.WeightsRatio, back)
		out.update = engineUpdate(on, work.Update, precision)
	}
	return out
}

// engineUpdate is the time of the engine's optimizer for so many bytes.
func engineUpdate(on *costmodel.Device, bytes float64, precision costmodel.Precision) float64 {
	return updateSeconds(on, bytes, precision) * cmp.Or(on.UpdateRatio, 1)
}

// updateSeconds is the time of the optimizer's kernels that read and write so many bytes.
func updateSeconds(device *costmodel.Device, bytes float64, precision costmodel.Precision) float64 {
	rate := device.UpdateBytesPerSecond
	if ops.WeightBytes(precision) == 4 {
		rate = device.FP32UpdateBytesPerSecond
	}
	return over(bytes, cmp.Or(rate, device.BytesPerSecond))
}

func over(amount, rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	return amount / rate
}
