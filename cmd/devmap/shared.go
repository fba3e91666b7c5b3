package main

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// share predicts a step again if several devices of the program share a GPU, and adds a note, as a
// plan assumes one GPU per device. on has the GPU of each device. Kernels on one GPU alternate.
func (job *compiled) share(on []int) error {
	if job.seconds == nil || !shares(on) {
		return nil
	}
	simulated, err := simulate.Shared(job.Program, on)
	if err != nil {
		return err
	}
	const ticks = 1e12 // per second
	seconds := float64(simulated.Makespan) / ticks
	job.shared = []string{fmt.Sprintf("several devices share one GPU: a step takes %s, and %s with one GPU each", show.Seconds(seconds), show.Seconds(*job.seconds))}
	job.seconds = &seconds
	return nil
}

// shares reports that two devices are on one GPU.
func shares(on []int) bool {
	sorted := slices.Sorted(slices.Values(on))
	return len(slices.Compact(sorted)) < len(on)
}

// together returns the numbers of the GPUs that a program's devices were measured on; nil if each
// is on its own, or if that is unknown.
func (job *compiled) together(of *program.Program) []int {
	numbers, on := make(map[string]int), make([]int, len(of.Devices))
	for i := range of.Devices {
		name := job.gpus[of.Devices[i].ID]
		if name == "" {
			name = fmt.Sprint("alone ", i)
		}
		if _, known := numbers[name]; !known {
			numbers[name] = i
		}
		on[i] = numbers[name]
	}
	if !shares(on) {
		return nil
	}
	return on
}
