package emit_test

import (
	"bytes"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

// piped is a plan of stages on the devices, in order, with so many micro-batches.
func piped(kind costmodel.ScheduleKind, microBatches int64, devices ...devicemap.Device) *devicemap.Plan {
	plan := &devicemap.Plan{Workload: costmodel.Workload{Strategy: costmodel.Pipeline, Mode: costmodel.Train, Schedule: kind, MicroBatches: microBatches, Runtime: "torch"}}
	plan.Model.Name = "m"
	for stage, device := range devices {
		plan.Stages = append(plan.Stages, devicemap.Stage{Stage: stage, Device: device})
	}
	return plan
}

// TestTorchSchedule: the rows of each schedule. The golden file, of 1F1B, was
// given to torch 2.11's own loader, which takes it:
//
//	python cmd/devmap/internal/torchcsv/testdata/torch/dump.py 3 3 5 planner/emit/testdata/torch-schedule/pipeline.csv
func TestTorchSchedule(t *testing.T) {
	for _, c := range []struct {
		name string
		plan *devicemap.Plan
		want string
	}{
		{"no schedule said", piped("", 2, 0, 1), "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"},
		{"gpipe on GPUs in another order", piped(costmodel.GPipe, 2, 3, 1), "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"},
		{
			"interleaved", piped(costmodel.Interleaved, 2, 0, 1, 0, 1),
			"0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n",
		},
	} {
		var got bytes.Buffer
		if err := target(t, "torch-schedule").Write(&got, &emit.Input{Plan: c.plan}); err != nil || got.String() != c.want {
			t.Errorf("%s: %v\n%s want\n%s", c.name, err, got.String(), c.want)
		}
	}
}

// TestTorchScheduleRefuses: what has no schedule that torch's loader takes.
func TestTorchScheduleRefuses(t *testing.T) {
	for _, c := range []struct {
		plan *devicemap.Plan
		want string
	}{
		{piped(costmodel.OneFOneB, 1, 0, 1), `the plan for "m": 1 micro-batch on 2 stages: 1f1b takes at least as many micro-batches as stages (2 works)`},
		{piped(costmodel.OneFOneB, 4, 0, 1, 0), `the plan for "m" has stage 2 on device 0: under 1f1b its stages go round the GPUs, 2 a GPU`},
		{piped(costmodel.Interleaved, 4, 0, 1, 1, 0), `the plan for "m" has stage 2 on device 1: under interleaved its stages go round the GPUs, 2 a GPU`},
		{piped(costmodel.GPipe, 1<<40, 0, 1), `the plan for "m" has 4398046511104 actions: more than the 16777216 of a schedule that is written`},
		{piped(costmodel.GPipe, 1), `the plan for "m" has no stages`},
	} {
		var got bytes.Buffer
		if err := target(t, "torch-schedule").Write(&got, &emit.Input{Plan: c.plan}); err == nil || err.Error() != c.want || got.Len() > 0 {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
