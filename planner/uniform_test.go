package planner_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// gridProblem returns a small model on hosts of four GPUs each.
func gridProblem(t *testing.T, gpus int, runtime string, objective planner.Objective) planner.Problem {
	t.Helper()
	const config = `{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 6, "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "tie_word_embeddings": false}`
	graph := fixtures.Must(hf.FromConfig("config.json", []byte(config)))(t)
	gpu := fixtures.Must(catalogue.Find("h100-80gb"))(t)
	topo := &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu.Device(costmodel.Train)}, gpus)}
	for i := range topo.Devices {
		topo.Devices[i].Host, topo.Devices[i].HostBytesPerSecond = string(rune('a'+i/4)), 50e9
	}
	return planner.Problem{Graph: graph, Topology: topo, Objective: objective, Workload: costmodel.Workload{
		Mode: costmodel.Train, Runtime: runtime, Strategy: costmodel.Pipeline, Batch: 32, MicroBatches: 4, Seq: 1024, Precision: costmodel.BF16Mixed,
		DP: costmodel.AutoDegree, TP: costmodel.AutoDegree, PP: costmodel.AutoDegree, CP: costmodel.AutoDegree,
	}}
}

// slowGrid returns the best value of all degrees and all cuts, by trying all.
func slowGrid(t *testing.T, problem planner.Problem) (best float64, forms int) {
	t.Helper()
	best = math.Inf(1)
	gpus := int64(len(problem.Topology.Devices))
	for tp := int64(1); tp <= gpus; tp++ {
		for cp := int64(1); tp*cp <= gpus; cp++ {
			for pp := int64(1); tp*cp*pp <= gpus; pp++ {
				dp := gpus / (tp * cp * pp)
				work := problem.Workload
				if dp*tp*cp*pp != gpus || work.Batch/work.MicroBatches%dp != 0 || pp > work.MicroBatches && work.Runtime != "megatron" {
					continue
				}
				work.TP, work.CP, work.PP, work.DP = costmodel.Degree(tp), costmodel.Degree(cp), costmodel.Degree(pp), costmodel.Degree(dp)
				work.Batch /= dp
				one := problem
				one.Workload = work
				one, err := one.Resolved()
				if err != nil {
					continue
				}
				forms++
				best = min(best, slowCut(&one, int(pp), int(tp*cp*dp)))
			}
		}
	}
	return best, forms
}

// slowCut returns the best value of all cuts into so many stages.
func slowCut(problem *planner.Problem, stages, size int) float64 {
	best, units := math.Inf(1), len(problem.Graph.Units)
	placed := make(devicemap.Map, units)
	var place func(first, stage int)
	place = func(first, stage int) {
		if stage == stages {
			if first == units {
				best = min(best, valueOf(problem, placed))
			}
			return
		}
		for end := first + 1; end <= units; end++ {
			if end < units && (problem.Costs.Units[end-1].Passes() || problem.Graph.Units[end-1].Kind == "norm") {
				continue // Megatron and torchtitan have norm and head on one stage
			}
			for unit := first; unit < end; unit++ {
				placed[unit] = devicemap.Device(stage * size)
			}
			place(end, stage+1)
		}
	}
	place(0, 0)
	return best
}

func valueOf(problem *planner.Problem, placed devicemap.Map) float64 {
	most := 0.
	for _, device := range devicemap.Predict(problem.Costs, problem.Topology, placed) {
		most = max(most, device.Share)
	}
	switch {
	case problem.Objective != planner.Time:
		return most
	case most > 1:
		return math.Inf(1)
	}
	return *devicemap.StepSeconds(problem.Costs, problem.Topology, placed)
}

// TestUniformDegrees: a slow search of all degrees and cuts finds no better plan, and none below
// the bound.
func TestUniformDegrees(t *testing.T) {
	for _, runtime := range []string{"megatron", "torchtitan", "megatron, small", "torchtitan, small"} {
		for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
			name, small, _ := strings.Cut(runtime, ", ")
			problem := gridProblem(t, 8, name, objective)
			for i := range problem.Topology.Devices {
				if small != "" { // some forms do not fit
					problem.Topology.Devices[i].CapacityBytes = 4600 << 20
				}
			}
			sol := fixtures.Must(planner.Solve(t.Context(), problem, planner.Settings{}))(t)
			best, forms := slowGrid(t, problem)
			work := &sol.Costs.Workload
			t.Logf("%s, %s: %v, bound %v, the grid of %d forms has %v: dp %v tp %v cp %v pp %v", runtime, objective, sol.Value, sol.LowerBound, forms, best, work.DP, work.TP, work.CP, work.PP)
			if forms < 10 || sol.Value > best*(1+1e-9) || sol.LowerBound > best*(1+1e-9) || sol.Status != planner.Optimal {
				t.Errorf("%s, %s: found %v with the bound %v, and the grid of %d forms has %v", runtime, objective, sol.Value, sol.LowerBound, forms, best)
			}
		}
	}
}

// TestUniformRefuses: ranks of one form need equal GPUs.
func TestUniformRefuses(t *testing.T) {
	problem := gridProblem(t, 8, "megatron", planner.Memory)
	problem.Topology.Devices[7].CapacityBytes *= 2
	if _, err := planner.Solve(t.Context(), problem, planner.Settings{}); err == nil || !strings.Contains(err.Error(), "device 7 differs from device 0 in capacity_bytes: ") {
		t.Errorf("other GPUs: %v", err)
	}
}

// TestInterleavedMisfit: forms that do not fit are the answer, though others have too few
// micro-batches for their stages.
func TestInterleavedMisfit(t *testing.T) {
	for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
		problem := gridProblem(t, 256, "megatron", objective)
		problem.Graph = readModel(t, "llama-3.1-405b")
		work := &problem.Workload
		work.Schedule, work.Batch, work.MicroBatches, work.Seq, work.Recompute, work.SequenceParallel = costmodel.Interleaved, 1024, 16, 4096, costmodel.RecomputeFull, true
		sol, err := planner.Solve(t.Context(), problem, planner.Settings{})
		var large *planner.InfeasibleError
		if !errors.As(err, &large) || sol == nil || !large.Proved || sol.LargestShare <= 1 {
			t.Errorf("%s: %v", objective, err)
		}
	}
}

// TestAutoAgainstGrids compares the chosen degrees with the best uniform degrees whose stages have
// equal numbers of blocks, as configurators of clusters try them. GRIDS=1 adds 256 and 1,024 GPUs.
func TestAutoAgainstGrids(t *testing.T) {
	sizes := []int{64}
	if os.Getenv("GRIDS") != "" {
		sizes = append(sizes, 256, 1024)
	}
	for _, name := range []string{"llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "mistral-7b-v0.1", "mixtral-8x7b"} {
		for _, gpus := range sizes {
			for _, asked := range []struct {
				objective planner.Objective
				schedule  costmodel.ScheduleKind
			}{{planner.Memory, ""}, {planner.Time, ""}, {planner.Memory, costmodel.Interleaved}, {planner.Time, costmodel.Interleaved}} {
				objective := asked.objective
				problem := gridProblem(t, gpus, "megatron", objective)
				problem.Workload.Schedule = asked.schedule
				for i := range problem.Topology.Devices {
					problem.Topology.Devices[i].Host = fmt.Sprint(i / 8)
				}
				work := &problem.Workload
				problem.Graph, work.Batch, work.MicroBatches, work.Seq, work.SequenceParallel = readModel(t, name), 2*int64(gpus), 8, 4096, true
				start := time.Now()
				sol, err := planner.Solve(t.Context(), problem, planner.Settings{TimeLimit: time.Minute})
				took := time.Since(start)
				best, forms := evenGrid(problem)
				if err != nil && best > 1 {
					t.Logf("%s, %d GPUs, %v: nothing fits, and of %d forms of the grid none", name, gpus, asked, forms)
					continue
				}
				if err != nil || forms < 10 || sol.Value > best*(1+1e-9) || sol.LowerBound > best*(1+1e-9) {
					t.Fatalf("%s, %d GPUs, %v: %v; the best of %d forms has %v", name, gpus, asked, err, forms, best)
				}
				chosen := &sol.Costs.Workload
				t.Logf("%s, %d GPUs, %v: dp %d tp %d cp %d pp %d: %.4f (bound %.4f), the grid of %d forms %.4f: %+.1f %%, %.1f s", name, gpus, asked,
					chosen.DP.Count(), chosen.TP.Count(), chosen.CP.Count(), chosen.PP.Count(), sol.Value, sol.LowerBound, forms, best, 100*(best/sol.Value-1), took.Seconds())
			}
		}
	}
}

// evenGrid returns the best value of all degrees with equal numbers of blocks per stage.
func evenGrid(problem planner.Problem) (best float64, forms int) {
	best = math.Inf(1)
	gpus := int64(len(problem.Topology.Devices))
	for tp := int64(1); tp <= gpus; tp *= 2 {
		for cp := int64(1); tp*cp <= gpus; cp *= 2 {
			for pp := int64(1); tp*cp*pp <= gpus; pp *= 2 {
				dp := gpus / (tp * cp * pp)
				work := problem.Workload
				blocks := int64(0)
				for unit := range problem.Graph.Units {
					if strings.Contains(problem.Graph.Units[unit].Name, "layers.") {
						blocks++
					}
				}
				runs := pp
				if work.Schedule == costmodel.Interleaved {
					runs *= 2
				}
				if work.Batch/work.MicroBatches%dp != 0 || blocks%runs != 0 || runs > pp && pp == 1 {
					continue
				}
				work.TP, work.CP, work.PP, work.DP = costmodel.Degree(tp), costmodel.Degree(cp), costmodel.Degree(pp), costmodel.Degree(dp)
				work.Batch /= dp
				one := problem
				one.Workload = work
				one, err := one.Resolved()
				if err != nil {
					continue
				}
				forms++
				placed, block := make(devicemap.Map, len(problem.Graph.Units)), int64(0)
				for unit := range placed {
					run := min(block*runs/blocks, runs-1)
					placed[unit] = devicemap.Device(run % pp * gpus / pp)
					if strings.Contains(problem.Graph.Units[unit].Name, "layers.") {
						block++
					}
				}
				best = min(best, valueOf(&one, placed))
			}
		}
	}
	return best, forms
}
