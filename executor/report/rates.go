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
// of forwards, of backwards, of gradients of weights and of updates over the planned ones. The ratios
// are of all devices together, so equal devices stay equal. It returns nil if no warm step of a
// training was timed.
func measuredRates(planned *costmodel.Topology, job *executor.Job, steps []Step, timed bool) *costmodel.Topology {
	if planned == nil || !timed || job.Workload.Mode != costmodel.Train || len(steps) <= warmSteps {
		return nil
	}
	const perSecond = 1e12
	var expected DeviceTime
	for i := range job.Program.Instrs {
		instr := &job.Program.Instrs[i]
		switch seconds := float64(instr.Ticks) / perSecond; instr.Op { //nolint:exhaustive // the others compute nothing in a training
		case program.Forward:
			expected.Forward += seconds
		case program.Backward, program.BackwardInput, program.Recompute:
			expected.Backward += seconds
		case program.BackwardWeight:
			expected.Weights += seconds
		case program.Step:
			expected.Update += seconds
		}
	}
	ratio := func(planned float64, of func(*DeviceTime) float64) float64 {
		if planned == 0 {
			return 0
		}
		var sums []float64
		for i := warmSteps; i < len(steps); i++ {
			sum := 0.
			for j := range steps[i].Devices {
				sum += of(&steps[i].Devices[j])
			}
			sums = append(sums, sum)
		}
		slices.Sort(sums)
		return sums[len(sums)/2] / planned
	}
	forward := ratio(expected.Forward, func(times *DeviceTime) float64 { return times.Forward })
	backward := ratio(expected.Backward, func(times *DeviceTime) float64 { return times.Backward - times.Weights })
	weights := ratio(expected.Weights, func(times *DeviceTime) float64 { return times.Weights })
	update := ratio(expected.Update, func(times *DeviceTime) float64 { return times.Update })
	out := *planned
	out.Devices = slices.Clone(planned.Devices)
	for i := range out.Devices {
		device := &out.Devices[i]
		rates := &device.Rates
		if device.Own.FLOPS != 0 {
			rates = &device.Own.Rates
		}
		before := *rates
		rates.ForwardRatio = cmp.Or(before.ForwardRatio, 1) * forward
		rates.BackwardRatio = cmp.Or(before.BackwardRatio, 1) * backward
		rates.WeightsRatio = cmp.Or(before.WeightsRatio, before.BackwardRatio, 1) * weights
		rates.UpdateRatio = cmp.Or(before.UpdateRatio, 1) * update
	}
	return &out
}
