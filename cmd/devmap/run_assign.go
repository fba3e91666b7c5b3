package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/gpuusage"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// assign assigns a GPU to every device of a plan, and the backend that runs it.
func (command *runCommand) assign(one *planRun) error {
	one.session = executor.Session{Backend: command.reference, Job: &one.job.Job}
	if command.gpus == nil {
		return nil
	}
	asked, err := command.Run.Devices()
	if err != nil {
		return err
	}
	count := len(one.job.devices)
	if asked != nil && len(asked) != count {
		return out.Usagef("--devices: it names %s, and %s is for %s: name one for each", show.Plural(len(asked), "GPU"), one.file, show.Plural(count, "device"))
	}
	on := asked
	if on == nil {
		if on, err = command.gpus.measured(one); err != nil {
			return err
		}
	}
	for i := range one.job.Program.Devices {
		device := int(one.job.Program.Devices[i].ID)
		gpu := device
		if on != nil {
			gpu = on[device]
		}
		if gpu >= len(command.gpus) {
			return command.gpus.noSuchGPU(one, gpu, asked != nil)
		}
		one.gpus = append(one.gpus, gpu)
	}
	one.names = command.gpus
	if err := one.job.share(one.gpus); err != nil {
		return err
	}
	options := executor.GPUOptions{Devices: one.gpus, Transport: executor.Transport(command.Run.Transport), StallLimit: stallLimit(one.job.Program)}
	if command.Run.Certify {
		options.Poisoned = command.observer.poisoned
	}
	fault, err := command.Run.FaultAsked()
	if err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(fault.Kind, "kill@"):
		one.kill = fault
	case fault.Kind != "":
		options.Fault = executor.Fault{Kind: executor.FaultKind(fault.Kind), At: fault.At}
	}
	one.session.Backend, err = backends.GPU(options)
	return err
}

// visibleGPUs are the GPUs that the driver shows to the process, by number.
type visibleGPUs []executor.GPU

// measured returns the GPUs on which the plan's devices were measured. It returns nil if one was
// not measured, or if none is here: the plan is then from another machine. If only some are here,
// the plan is refused.
func (gpus visibleGPUs) measured(one *planRun) ([]int, error) {
	on, here := make([]int, len(one.job.devices)), 0
	for device := range on {
		measured := one.job.gpus[int32(device)]
		if measured == "" {
			return nil, nil //nolint:nilnil // no measurement
		}
		on[device] = slices.IndexFunc(gpus, func(gpu executor.GPU) bool { return gpu.UUID == measured })
		if on[device] >= 0 {
			here++
		}
	}
	if here == 0 {
		return nil, nil //nolint:nilnil // none is here
	}
	for device, gpu := range on {
		if gpu < 0 {
			return nil, out.Usagef("%s is for %s, device %d on %s, which is not here any more, and %s", one.file, show.Plural(len(on), "GPU"), device, one.job.gpus[int32(device)], gpus.shown(one))
		}
	}
	return on, nil
}

// elsewhere notes devices that run on another GPU than the measured one.
func (gpus visibleGPUs) elsewhere(one *planRun) (notes []string) {
	for i, gpu := range one.gpus {
		device := one.job.Program.Devices[i].ID
		if measured := one.job.gpus[device]; measured != "" && measured != gpus[gpu].UUID {
			notes = append(notes, fmt.Sprintf("device %d was planned for %s, and runs on GPU %d (%s), which is another", device, measured, gpu, gpus[gpu].Name))
		}
	}
	return notes
}

// stallLimit returns how long the GPUs may run without finishing an instruction. It is many times
// the longest predicted instruction, and long enough if that is predicted to take nothing.
func stallLimit(of *program.Program) time.Duration {
	const (
		least   = 30 * time.Second
		many    = 20
		tick    = 1000 // per nanosecond
		longest = 24 * time.Hour
	)
	slowest := int64(0)
	for i := range of.Instrs {
		slowest = max(slowest, of.Instrs[i].Ticks/tick)
	}
	return max(least, many*min(time.Duration(slowest), longest))
}

// noSuchGPU returns the error for more devices than GPUs, with the fix.
func (gpus visibleGPUs) noSuchGPU(one *planRun, gpu int, asked bool) error {
	if asked {
		return out.Usagef("--devices: GPU %d, and the driver shows %d: %s", gpu, len(gpus), gpuusage.Names(gpus))
	}
	count := len(one.job.devices)
	return out.Usagef("%s is for %s, and %s: %s", one.file, show.Plural(count, "GPU"), show.Missing(count, len(gpus)), gpus.shown(one))
}

// shown lists the GPUs, and an assignment of the plan's devices to them.
func (gpus visibleGPUs) shown(one *planRun) string {
	count := len(one.job.devices)
	spread, words := make([]int, count), make([]string, count)
	for i := range spread {
		spread[i] = i * len(gpus) / count
		words[i] = fmt.Sprint(spread[i])
	}
	puts := "puts them on these"
	if count > len(gpus) {
		puts = "puts several devices on one"
	}
	return fmt.Sprintf("the driver shows %d: %s; --devices %s %s, %s", len(gpus), gpuusage.Names(gpus), strings.Join(words, ","), puts, gpus.together(one, spread))
}

// together describes the memory of the fullest GPU if several devices of a plan are on it, with one
// context for all.
func (gpus visibleGPUs) together(one *planRun, spread []int) string {
	takes, contexts := make([]int64, len(gpus)), make([]int64, len(gpus))
	for i, gpu := range spread {
		predicted := &one.job.devices[i].Predicted
		takes[gpu] += predicted.DeviceUsedBytes - predicted.OverheadBytes
		contexts[gpu] = max(contexts[gpu], predicted.OverheadBytes)
	}
	fullest := 0
	for gpu := range takes {
		if takes[gpu] += contexts[gpu]; takes[gpu] > takes[fullest] {
			fullest = gpu
		}
	}
	said := fmt.Sprintf("which takes %v", costmodel.Bytes(takes[fullest]))
	now := gpuusage.Look()
	defer now.Close()
	if free, known := now.Free(gpus[fullest].UUID); known {
		said += fmt.Sprintf(" and has %v free", costmodel.Bytes(free))
	}
	return said
}

// where names the GPUs that a plan runs on; empty: the CPU reference runs.
func (gpus visibleGPUs) where(one *planRun) string {
	var names []string
	for _, gpu := range slices.Compact(slices.Sorted(slices.Values(one.gpus))) {
		names = append(names, fmt.Sprintf("GPU %d (%s)", gpu, gpus[gpu].Name))
	}
	text := strings.Join(names, ", ")
	if devices := len(one.job.devices); text != "" && len(names) != devices {
		text += " in place of " + show.Plural(devices, "GPU")
	}
	return text
}
