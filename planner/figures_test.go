package planner_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestWeights compares the largest GPU in GiB of weights-only plans with the optima; each must be
// proved.
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
		{"deepseek-v3", map[int]float64{2: 314.375, 4: 160.871, 8: 85.798}, .0006}, // routers are F32 from Transformers 5.24 on
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

func readModel(tb testing.TB, name string) *modelgraph.Graph {
	tb.Helper()
	data := fixtures.Must(os.ReadFile("../fixtures/models/" + name + "/config.json"))(tb)
	g := fixtures.Must(hf.FromConfig(name, data))(tb)
	return g
}

func plan(tb testing.TB, name string, w costmodel.Workload, gpus int, capacity int64) *planner.Solution {
	tb.Helper()
	g := readModel(tb, name)
	table := randomproblem.Table(tb, g, w)
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(tb)
	topo := &costmodel.Topology{Devices: make([]costmodel.Device, gpus)}
	for i := range topo.Devices {
		topo.Devices[i] = gpu.Device(w.Mode)
		if capacity > 0 {
			topo.Devices[i].CapacityBytes = capacity
		}
	}
	sol := fixtures.Must(planner.Solve(context.Background(), planner.Problem{Graph: g, Costs: table, Topology: topo}, planner.Settings{}))(tb)
	return sol
}

func largest(s *planner.Solution) float64 {
	var most int64
	for i := range s.Devices {
		most = max(most, s.Devices[i].Predicted.PeakAllocatedBytes)
	}
	return float64(most) / (1 << 30)
}

// TestTrain compares training plans on four H200 with placements whose measured memory is balanced
// (18.2 17.6 17.6 17.6 GiB, and 27.6 28.2 28.2 26.0).
func TestTrain(t *testing.T) {
	w := costmodel.Workload{Mode: costmodel.Train, Batch: 4, Seq: 2048, Optimizer: costmodel.AdamW}
	sol := plan(t, "qwen2.5-3b", w, 4, 0)
	if got := fmt.Sprint(runs(t, "qwen2.5-3b", sol)); got != "[embed_tokens+lm_head 12 12 12+norm+rotary_emb]" || sol.Status != planner.Optimal || !sol.EvenProved {
		t.Errorf("qwen2.5-3b: %s (%s, even %t)", got, sol.Status, sol.EvenProved)
	}
	sol = plan(t, "llama-3.1-8b", w, 4, 0)
	want := [4]int{8, 10, 10, 4}
	blocks := [4]int{}
	g := readModel(t, "llama-3.1-8b")
	for u, d := range sol.Map {
		if strings.HasPrefix(g.Units[u].Name, "model.layers.") {
			blocks[d]++
		}
	}
	for d := range want {
		if off := blocks[d] - want[d]; off < -1 || off > 1 || sol.Status != planner.Optimal || !sol.EvenProved {
			t.Errorf("llama-3.1-8b: blocks %v, want %v within one (%s, even %t)", blocks, want, sol.Status, sol.EvenProved)
		}
	}
	var largest, sum int64
	for i := range sol.Devices {
		peak := sol.Devices[i].Predicted.PeakAllocatedBytes
		largest, sum = max(largest, peak), sum+peak
	}
	imbalance := float64(largest) * float64(len(sol.Devices)) / float64(sum)
	if sol.Map[0] != 0 || sol.Map[len(sol.Map)-1] != 3 || imbalance > 1.05 {
		t.Errorf("llama-3.1-8b: embedding on %v, head on %v, imbalance %.3f", sol.Map[0], sol.Map[len(sol.Map)-1], imbalance)
	}
}

// TestEven: llama-3.2-1b's embedding is the bottleneck on 8 GPUs; the others share the blocks as
// evenly as possible.
func TestEven(t *testing.T) {
	sol := plan(t, "llama-3.2-1b", costmodel.Workload{Mode: costmodel.Load}, 8, 1<<40)
	got := runs(t, "llama-3.2-1b", sol)
	alone := 0
	var blocks []string
	for _, r := range got {
		if r == "embed_tokens+lm_head" {
			alone++
			continue
		}
		blocks = append(blocks, strings.TrimSuffix(r, "+norm+rotary_emb"))
	}
	slices.Sort(blocks)
	if alone != 1 || fmt.Sprint(blocks) != "[2 2 2 2 2 3 3]" || !sol.EvenProved || sol.Status != planner.Optimal {
		t.Errorf("%v (%s, even %t)", got, sol.Status, sol.EvenProved)
	}
	if name := sol.Alone; name != "model.embed_tokens" {
		t.Errorf("the bottleneck is %q", name)
	}
}

// runs returns a text per device: the number of its blocks, and the last part of the names of its
// other units.
func runs(t *testing.T, model string, sol *planner.Solution) []string {
	t.Helper()
	g := readModel(t, model)
	out := make([]string, len(sol.Devices))
	for d := range out {
		n := 0
		var parts []string
		for u, on := range sol.Map {
			switch name := g.Units[u].Name; {
			case int(on) != d:
			case strings.HasPrefix(name, "model.layers."):
				n++
			default:
				parts = append(parts, name[strings.LastIndexByte(name, '.')+1:])
			}
		}
		if n > 0 {
			parts = append([]string{strconv.Itoa(n)}, parts...)
		}
		out[d] = strings.Join(parts, "+")
	}
	return out
}
