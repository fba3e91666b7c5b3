package steptime

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// steady is a device of [onOwn] with the rates of products and attention at its clock in a long
// training, if their power exceeds its limit. The clock falls until the energy of a step is the limit
// times its time:
//
//	seconds of products × FLOPS ÷ SustainedFLOPS + other seconds × MemoryPower = seconds of a step
//
// The left side is the energy without the lower clock, in seconds at the limit. Memory has a clock of
// its own. Recomputation does not count, so that a search can mix units with and without it.
func steady(device *costmodel.Device, table *costmodel.Table) *costmodel.Device {
	workload := &table.Workload
	if workload.Mode != costmodel.Train || device.SustainedFLOPS <= 0 || ops.ComputeBytes(workload.Precision) == 4 {
		return device
	}
	batches := float64(max(1, workload.MicroBatches))
	products, all := passTimes(device, &table.Step, workload.Precision)
	others := batches*(all-products) + updateSeconds(device, table.StepUpdate, workload.Precision)
	products *= batches
	energy := products*device.FLOPS/device.SustainedFLOPS + others*device.MemoryPower
	if energy <= products+others {
		return device
	}
	slower, slow := max(1e-200, products/(energy-others)), *device // a rate of 0 is unknown, not slow
	slow.FLOPS, slow.UnalignedFLOPS, slow.AttentionFLOPS = device.FLOPS*slower, device.UnalignedFLOPS*slower, device.AttentionFLOPS*slower
	return &slow
}
