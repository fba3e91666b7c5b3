package report

import (
	"cmp"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// warmSteps are the first steps, in which a GPU is faster or slower than later.
const warmSteps = 2

// measuredRates returns a copy of the plan's topology with the ratios of a run: the measured seconds
// of forwards, of backwards, of gradients of weights and of updates over the planned ones. All
// devices together count, so equal devices stay equal. It returns nil if no warm step of a training
// was timed.
func measuredRates(planned *costmodel.Topology, job *executor.Job, steps []Step, timed bool) *costmodel.Topology {
	if planned == nil || !timed || job.Workload.Mode != costmodel.Train || len(steps) <= warmSteps {
		return nil
	}
	const perSecond = 1e12
	var forward, backward, weights, update float64
	for i := range job.Program.Instrs {
		switch instr := &job.Program.Instrs[i]; instr.Op { //nolint:exhaustive // the others compute nothing in a training
		case program.Forward:
			forward += float64(instr.Ticks) / perSecond
		case program.Backward, program.BackwardInput, program.Recompute:
			backward += float64(instr.Ticks) / perSecond
		case program.BackwardWeight:
			weights += float64(instr.Ticks) / perSecond
		case program.Step:
			update += float64(instr.Ticks) / perSecond
		}
	}
	steps = steps[warmSteps:]
	ratio := func(planned float64, of func(*DeviceTime) float64) float64 {
		var sums []float64
		for i := range steps {
			sum := 0.
			for j := range steps[i].Devices {
				sum += of(&steps[i].Devices[j])
			}
			sums = append(sums, sum)
		}
		slices.Sort(sums)
		if planned == 0 {
			return 0
		}
		return sums[len(sums)/2] / planned
	}
	out := *planned
	out.Devices = slices.Clone(planned.Devices)
	for i := range out.Devices {
		device := &out.Devices[i]
		rates := &device.Rates
		if device.Own.FLOPS != 0 {
			rates = &device.Own.Rates
		}
		before := *rates
		rates.ForwardRatio = cmp.Or(before.ForwardRatio, 1) * ratio(forward, func(times *DeviceTime) float64 { return times.Forward })
		rates.BackwardRatio = cmp.Or(before.BackwardRatio, 1) * ratio(backward, func(times *DeviceTime) float64 { return times.Backward - times.Weights })
		rates.WeightsRatio = cmp.Or(before.WeightsRatio, before.BackwardRatio, 1) * ratio(weights, func(times *DeviceTime) float64 { return times.Weights })
		rates.UpdateRatio = cmp.Or(before.UpdateRatio, 1) * ratio(update, func(times *DeviceTime) float64 { return times.Update })
	}
	return &out
}
