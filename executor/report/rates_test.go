package report

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/program"
)

// A run of 2 s forwards, 3 s to gradients of inputs, 1 s of gradients of weights and 1 s of updates was
// planned with 1, 2, 2 and 4 s. The first steps do not count, and a ratio that the plan already has
// does.
func TestMeasuredRates(t *testing.T) {
	t.Parallel()
	of := func(op program.Op, seconds int64) program.Instr { return program.Instr{Op: op, Ticks: seconds * 1e12} }
	job := &executor.Job{Workload: &costmodel.Workload{Mode: costmodel.Train}, Program: &program.Program{Instrs: []program.Instr{
		of(program.Forward, 1), of(program.Recompute, 1), of(program.BackwardInput, 1), of(program.BackwardWeight, 2), of(program.Step, 4), of(program.Send, 9),
	}}}
	planned := &costmodel.Topology{Devices: make([]costmodel.Device, 2)}
	planned.Devices[0].BackwardRatio = 2
	planned.Devices[1].Own.FLOPS = 1
	cold, warm := DeviceTime{Forward: 9}, DeviceTime{Forward: 1, Backward: 2, Weights: .5, Update: .5}
	steps := []Step{{Devices: []DeviceTime{cold}}, {Devices: []DeviceTime{cold}}, {Devices: []DeviceTime{warm, warm}}}
	got := measuredRates(planned, job, steps, true)
	if got == nil {
		t.Fatal("no rates")
	}
	near := func(have, want float64) bool { return math.Abs(have-want) < 1e-9 }
	first, second := got.Devices[0].Rates, got.Devices[1].Own.Rates
	if !near(first.ForwardRatio, 2) || !near(first.BackwardRatio, 3) || !near(first.WeightsRatio, 1) || !near(first.UpdateRatio, .25) {
		t.Errorf("%+v", first)
	}
	if !near(second.ForwardRatio, 2) || !near(second.BackwardRatio, 1.5) || !near(second.WeightsRatio, .5) || got.Devices[1].ForwardRatio != 0 {
		t.Errorf("%+v, %+v", second, got.Devices[1].Rates)
	}
	if planned.Devices[0].ForwardRatio != 0 {
		t.Error("the plan's own topology changed")
	}
	forwards := &executor.Job{Workload: &costmodel.Workload{Mode: costmodel.Infer}, Program: job.Program}
	for _, none := range []*costmodel.Topology{measuredRates(planned, forwards, steps, true), measuredRates(planned, job, steps, false), measuredRates(planned, job, steps[:2], true), measuredRates(nil, job, steps, true)} {
		if none != nil {
			t.Errorf("%+v without warm steps of a training on GPUs", none)
		}
	}
}
