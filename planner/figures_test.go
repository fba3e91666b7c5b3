package planner_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
)

// TestWeights holds the largest GPU in GiB of weights-only plans to the
// optima, each of which must be proved.
func TestWeights(t *testing.T) {
	for _, c := range []struct {
		model string
		want  map[int]float64 // GPUs → GiB
		tol   float64
	}{
		{"llama-3.1-8b", map[int]float64{2: 7.479, 4: 3.822, 8: 2.031}, .0006},
		{"llama-3.2-1b", map[int]float64{2: 1.169, 4: .603, 8: .489}, .0006},
		{"gemma-2b", map[int]float64{2: 2.412, 4: 1.231, 8: .977}, .0006},
		{"mixtral-8x7b", map[int]float64{2: 43.495, 4: 21.870, 8: 11.057}, .0006},
		{"deepseek-v3", map[int]float64{2: 626.572, 4: 321.510, 8: 171.472}, .0006},
		{"qwen2.5-vl-3b", map[int]float64{2: 3.548, 4: 1.825, 8: .920}, .0006},
		{"llama-3_1-nemotron-ultra-253b-v1", map[int]float64{2: 236.64, 4: 121.88, 8: 66.32}, .006},
	} {
		for gpus, want := range c.want {
			t.Run(fmt.Sprint(c.model, "/", gpus), func(t *testing.T) {
				sol := plan(t, c.model, costmodel.Workload{Mode: costmodel.Load}, gpus, 1<<40)
				if got := largest(sol); math.Abs(got-want) > c.tol || sol.Status != planner.Optimal {
					t.Errorf("largest GPU %.3f GiB (%s), want %.3f", got, sol.Status, want)
				}
			})
		}
	}
}

func readModel(t testing.TB, name string) *modelgraph.Graph {
	t.Helper()
	data, err := os.ReadFile("../fixtures/models/" + name + "/config.json")
	if err != nil {
		t.Fatal(err)
	}
	g, err := hf.FromConfig(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func plan(t testing.TB, name string, w costmodel.Workload, gpus int, capacity int64) *planner.Solution {
	t.Helper()
	g := readModel(t, name)
	w, err := estimate.Resolve(g, w)
	if err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	topo := &costmodel.Topology{Devices: make([]costmodel.Device, gpus)}
	for i := range topo.Devices {
		topo.Devices[i] = gpu.Device(w.Mode)
		if capacity > 0 {
			topo.Devices[i].CapacityBytes = capacity
		}
	}
	sol, err := planner.Solve(context.Background(), planner.Problem{Graph: g, Costs: table, Topology: topo}, planner.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return sol
}

func largest(s *planner.Solution) float64 {
	var most int64
	for i := range s.Devices {
		most = max(most, s.Devices[i].Predicted.PeakAllocatedBytes)
	}
	return float64(most) / (1 << 30)
}

func TestTrainX(t *testing.T) {
	for _, m := range []string{"qwen2.5-3b", "llama-3.1-8b"} {
		sol := plan(t, m, costmodel.Workload{Mode: costmodel.Train, Batch: 4, Seq: 2048, Optimizer: costmodel.AdamW}, 4, 0)
		for _, d := range sol.Devices {
			t.Log(m, d.Units, costmodel.Bytes(d.Predicted.PeakAllocatedBytes), d.Predicted.PeakAt)
		}
		t.Log(sol.Map, sol.Status, sol.Value, sol.LowerBound, sol.Even)
	}
}
