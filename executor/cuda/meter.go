//go:build cuda && linux && cgo && amd64

package cuda

import "github.com/devmap-dev/devmap/executor"

// measure makes the gauge of every GPU in use, on which contexts are.
func (machine *machine) measure() error {
	before, err := unused()
	for _, gpu := range machine.gpus {
		gpu.gauge = &memoryGauge{result: executor.GPUResult{GPU: gpu.Ordinal, UUID: gpu.UUID, Name: gpu.Name, Total: gpu.Total}}
		for _, device := range machine.on(gpu) {
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
		machine.gauges = append(machine.gauges, gpu.gauge)
	}
	machine.reads(withContext)
	return nil
}

// ready is when nothing is missing for a step.
func (machine *machine) ready() error {
	machine.reads(allReady)
	return nil
}

// wakened begins the moments of another turn: what was before the process was there,
// and the context, stay what they were.
func (machine *machine) wakened() {
	for _, gauge := range machine.gauges {
		gauge.begin()
	}
	machine.reads(allReady)
}

// reads fills one figure of every GPU.
func (machine *machine) reads(moment func(result *executor.GPUResult) *int64) {
	for _, gauge := range machine.gauges {
		gauge.moment(moment)
	}
}

// libraries is more than contexts, kernels and libraries were ever seen to take
// between one moment and another.
const libraries = 64 << 20

// Measured are the GPUs of the machine.
func (machine *machine) Measured() []executor.GPUResult {
	var all []executor.GPUResult
	for _, gauge := range machine.gauges {
		all = append(all, gauge.told())
	}
	return all
}
