//go:build cuda && linux && cgo && amd64

package cuda

import "github.com/devmap-dev/devmap/executor"

// meters are NVML's figures of a fleet's GPUs.
type meters struct {
	fleet  *fleet
	gauges []*memoryGauge // kept after Close
}

// measure makes the gauge of every GPU in use, whose contexts exist by then.
func (meters *meters) measure() error {
	before, err := unused()
	for _, gpu := range meters.fleet.gpus {
		gpu.gauge = &memoryGauge{result: executor.GPUResult{GPU: gpu.Ordinal, UUID: gpu.UUID, Name: gpu.Name, Total: gpu.Total}}
		for _, device := range meters.fleet.on(gpu) {
			gpu.gauge.result.Devices = append(gpu.gauge.result.Devices, device.plan.ID)
			gpu.gauge.result.Arenas += gpu.whole(device.plan.Arena)
		}
		found, known := before[gpu.UUID]
		switch {
		case err != nil:
			gpu.gauge.result.Unmeasured = err.Error()
		case !known:
			gpu.gauge.result.Unmeasured = "NVML knows no " + gpu.UUID
		}
		gpu.gauge.handle, gpu.gauge.before, gpu.gauge.result.Before = found.handle, found.processes, found.used
		meters.gauges = append(meters.gauges, gpu.gauge)
	}
	meters.reads(withContext)
	return nil
}

// wakened begins the figures of another turn. Those from before the process and with the context
// remain.
func (meters *meters) wakened() {
	for _, gauge := range meters.gauges {
		gauge.begin()
	}
	meters.reads(allReady)
}

// reads fills in one figure of every GPU.
func (meters *meters) reads(moment func(result *executor.GPUResult) *int64) {
	for _, gauge := range meters.gauges {
		gauge.moment(moment)
	}
}

// libraries is more than contexts, kernels and libraries ever took between two moments.
const libraries = 64 << 20

// Measured implements [executor.Meter].
func (meters *meters) Measured() []executor.GPUResult {
	var all []executor.GPUResult
	for _, gauge := range meters.gauges {
		all = append(all, gauge.measured())
	}
	return all
}
