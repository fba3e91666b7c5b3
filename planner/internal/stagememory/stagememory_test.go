package stagememory_test

import (
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestPipelineBest: for a few units on few devices, the solver's map is as good as the best of all
// cuts.
func TestPipelineBest(t *testing.T) {
	for _, kind := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved} {
		gpus, chunks := 3, 1
		if kind == costmodel.Interleaved {
			gpus, chunks = 2, 2
		}
		for _, mode := range []costmodel.Mode{costmodel.Train, costmodel.Infer} {
			p := randomproblem.PipelineOf(t, randomproblem.SixBlocks, gpus, costmodel.Workload{Mode: mode, Schedule: kind, Batch: 16, MicroBatches: 4, Seq: 512})
			sol := fixtures.Must(planner.Solve(t.Context(), p, planner.Settings{}))(t)
			best := math.Inf(1)
			exhaustive.Cuts(len(p.Graph.Units), gpus*chunks, nil, func(cuts []int) {
				m := make(devicemap.Map, len(p.Graph.Units))
				for c := range len(cuts) - 1 {
					if cuts[c+1] == cuts[c]+1 && p.Costs.Units[cuts[c]].Params == 0 {
						return // the rotary unit alone is no stage
					}
					for u := cuts[c]; u < cuts[c+1]; u++ {
						m[u] = devicemap.Device(c % gpus)
					}
				}
				r := devicemap.Check(p.Graph, p.Costs, p.Topology, m.Flatten(p.Graph), nil)
				if len(r.Faults) > 0 {
					t.Fatal(r.Faults)
				}
				share := 0.
				for d := range r.Devices {
					share = max(share, r.Devices[d].Share)
				}
				best = min(best, share)
			})
			if math.Abs(sol.Value-best) > 1e-9 || sol.Status != planner.Optimal || sol.LowerBound > sol.Value {
				t.Errorf("%s %s: %v (%s), the best of all cuts is %v", kind, mode, sol.Value, sol.Status, best)
			}
		}
	}
}

// TestPipelinePlans: the GPUs have stages in order, both ends have a copy of a tied parameter, and
// the bound is at most the value.
func TestPipelinePlans(t *testing.T) {
	for _, kind := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved} {
		for _, gpus := range []int{1, 2, 4, 8} {
			if kind == costmodel.Interleaved && gpus == 1 {
				continue
			}
			p := randomproblem.PipelineOf(t, randomproblem.Qwen3B, gpus, costmodel.Workload{Mode: costmodel.Train, Schedule: kind, Batch: 16, MicroBatches: 16, Seq: 1024})
			sol := fixtures.Must(planner.Solve(t.Context(), p, planner.Settings{}))(t)
			stages := sol.Map.Stages(p.Graph, "")
			want := gpus
			if kind == costmodel.Interleaved {
				want = 2 * gpus
			}
			if len(stages) != want || sol.LowerBound > sol.Value || sol.LowerBound <= 0 {
				t.Errorf("%s on %d: %d stages, value %v, bound %v", kind, gpus, len(stages), sol.Value, sol.LowerBound)
			}
			for i := range stages {
				if int(stages[i].Device) != i%gpus {
					t.Errorf("%s on %d: stage %d is on device %d", kind, gpus, i, stages[i].Device)
				}
			}
		}
	}
}

// TestPipelineRefused: errors for workloads that no engine runs name what works.
func TestPipelineRefused(t *testing.T) {
	train := func(kind costmodel.ScheduleKind, m int64) costmodel.Workload {
		return costmodel.Workload{Mode: costmodel.Train, Schedule: kind, Batch: m, MicroBatches: m, Seq: 64}
	}
	for _, c := range []struct {
		gpus int
		w    costmodel.Workload
		pin  []devicemap.Pin
		want string
	}{
		{4, train(costmodel.OneFOneB, 2), nil, "micro_batches: 2 micro-batches on 4 stages: 1f1b takes at least as many micro-batches as stages (4 works)"},
		{1, train(costmodel.Interleaved, 4), nil, "schedule: interleaved runs go round the GPUs, and there is 1: 2 work"},
		{1, costmodel.Workload{Runtime: costmodel.Devmap, Mode: costmodel.Train, Schedule: costmodel.ZBV, Batch: 4, MicroBatches: 4, Seq: 64, Precision: costmodel.BF16True}, nil, "schedule: a V goes over the GPUs and back, and there is 1: 2 work"},
		{4, train(costmodel.Interleaved, 9), nil, "(8 and 10 work), and a divisor of the batch of 9 (3 does)"},
		{64, train(costmodel.GPipe, 64), nil, "gpus: a pipeline with more stages than units: 64 stages and 39 units that can be one; at most 39 GPUs work"},
		{30, train(costmodel.Interleaved, 30), nil, "virtual_stages: a pipeline with more stages than units: 30 GPUs × 2 runs are 60 stages, and 39 units"},
		{4, train(costmodel.GPipe, 4), []devicemap.Pin{{Pattern: "lm_head", Device: 1}}, `pin "lm_head": "lm_head" cannot be on device 1: a pipeline's stages are in device order, so that it is on device 3`},
		{4, train(costmodel.Interleaved, 4), []devicemap.Pin{{Pattern: "lm_head", Device: 3}}, `pin "lm_head"`},
	} {
		p := randomproblem.PipelineOf(t, randomproblem.Qwen3B, c.gpus, c.w)
		p.Pins = c.pin
		if _, err := planner.Solve(t.Context(), p, planner.Settings{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d GPUs, %+v: %v", c.gpus, c.w, err)
		}
	}
}

// TestPipelineFaults: Check finds stages that the schedule cannot run.
func TestPipelineFaults(t *testing.T) {
	p := randomproblem.PipelineOf(t, randomproblem.Qwen3B, 4, costmodel.Workload{Mode: costmodel.Train, Schedule: costmodel.OneFOneB, Batch: 8, MicroBatches: 8, Seq: 64})
	m := make(devicemap.Map, len(p.Graph.Units))
	for u := range m {
		m[u] = devicemap.Device(u / 5 % 4)
	}
	for kind, want := range map[costmodel.ScheduleKind]int{costmodel.OneFOneB: 4, costmodel.Interleaved: 0} {
		p.Costs.Workload.Schedule = kind
		r := devicemap.Check(p.Graph, p.Costs, p.Topology, m.Flatten(p.Graph), nil)
		if len(r.Faults) != want {
			t.Errorf("%s: %v", kind, r.Faults)
		}
	}
	p.Costs.Workload.Schedule = costmodel.Interleaved
	m[len(m)-1] = 0
	if r := devicemap.Check(p.Graph, p.Costs, p.Topology, m.Flatten(p.Graph), nil); len(r.Faults) != 0 {
		t.Errorf("a ninth stage on device 0: %v", r.Faults)
	}
}
