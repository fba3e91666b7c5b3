package planner_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
)

// declaredChain returns a model of n layers with different declared costs.
func declaredChain(b *testing.B, n int) *modelgraph.Graph {
	b.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	layers := make([]modelgraph.Layer, n)
	for i := range layers {
		d := modelgraph.NotDeclared()
		d.ParamsBytes = 1<<20 + rng.Int64N(1<<20)*2
		d.ActivationBytes = 1<<16 + rng.Int64N(1<<20)*2
		d.WorkspaceBytes = rng.Int64N(1<<20) * 2
		layers[i] = modelgraph.Layer{Name: fmt.Sprintf("layers.%d", i), Declared: &d}
	}
	g := fixtures.Must(modelgraph.New("chain", layers, nil))(b)
	return g
}

// onDevices returns the problem of g on k devices, each large enough for all of g.
func onDevices(b *testing.B, g *modelgraph.Graph, w costmodel.Workload, k int) planner.Problem {
	b.Helper()
	w, err := estimate.Resolve(g, w)
	if err != nil {
		b.Fatal(err)
	}
	table := fixtures.Must(estimate.Table(g, w))(b)
	topology := &costmodel.Topology{Devices: make([]costmodel.Device, k)}
	for d := range topology.Devices {
		topology.Devices[d] = costmodel.Device{Name: "gpu", CapacityBytes: 1 << 42}
	}
	return planner.Problem{Graph: g, Costs: table, Topology: topology}
}

// BenchmarkChain proves chains of different layers on 64 devices. ns/nlogn is the time over n·log₂
// n: if it does not rise with n, the time grows no faster. 10,000 layers may take a second, and
// of-1s is the used part.
func BenchmarkChain(b *testing.B) {
	for _, mode := range []costmodel.Mode{costmodel.Load, costmodel.Train} {
		for _, n := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/n=%d/k=64", mode, n), func(b *testing.B) {
				g := declaredChain(b, n)
				p := onDevices(b, g, costmodel.Workload{Mode: mode, Seq: 1, Optimizer: costmodel.SGD}, 64)
				var sol *planner.Solution
				for b.Loop() {
					var err error
					if sol, err = planner.Solve(context.Background(), p, planner.Settings{}); err != nil {
						b.Fatal(err)
					}
					if sol.Status != planner.Optimal {
						b.Fatalf("%s: share %v, bound %v", sol.Status, sol.Value, sol.LowerBound)
					}
				}
				each := b.Elapsed().Seconds() / float64(b.N)
				b.ReportMetric(each*1e9/(float64(n)*math.Log2(float64(n))), "ns/nlogn")
				b.ReportMetric(float64(sol.Probes), "probes")
				b.ReportMetric(map[bool]float64{true: 1}[sol.EvenProved], "even")
				if n == 10_000 {
					b.ReportMetric(each, "of-1s")
				}
			})
		}
	}
}

// BenchmarkPlan runs the planner in-process, from the bytes of a config to a proved map on 8 GPUs.
func BenchmarkPlan(b *testing.B) {
	for _, model := range []string{
		"llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "llama-3_1-nemotron-ultra-253b-v1", "qwen2.5-vl-3b",
	} {
		for _, mode := range []costmodel.Mode{costmodel.Load, costmodel.Train} {
			b.Run(fmt.Sprintf("%s/%s/gpus=8", model, mode), func(b *testing.B) {
				config := fixtures.Must(os.ReadFile(filepath.Join("..", "fixtures", "models", model, "config.json")))(b)
				b.ReportAllocs()
				for b.Loop() {
					g := fixtures.Must(hf.FromConfig(model, config))(b)
					p := onDevices(b, g, costmodel.Workload{Mode: mode, Optimizer: costmodel.AdamW}, 8)
					sol, err := planner.Solve(context.Background(), p, planner.Settings{})
					if err != nil || sol.Status != planner.Optimal {
						b.Fatalf("%v, %v", sol, err)
					}
				}
			})
		}
	}
}

// BenchmarkArenas does the same for devmap's own engine, with llama-3.1-405b on 64 GPUs.
func BenchmarkArenas(b *testing.B) {
	config := fixtures.Must(os.ReadFile(filepath.Join("..", "fixtures", "models", "llama-3.1-405b", "config.json")))(b)
	for _, workload := range []costmodel.Workload{
		{Strategy: costmodel.DeviceMap},
		{Strategy: costmodel.DeviceMap, Batch: 64, MicroBatches: 64},
		{Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, Batch: 64, MicroBatches: 64},
		{Strategy: costmodel.Pipeline, Schedule: costmodel.GPipe, Batch: 64, MicroBatches: 64},
	} {
		workload.Runtime, workload.Mode, workload.World = costmodel.Devmap, costmodel.Train, 64
		if workload.Strategy == costmodel.DeviceMap {
			workload.World = 0
		}
		b.Run(fmt.Sprintf("%s%s/m=%d", workload.Strategy, workload.Schedule, workload.MicroBatches), func(b *testing.B) {
			for b.Loop() {
				g := fixtures.Must(hf.FromConfig("llama-3.1-405b", config))(b)
				sol, err := planner.Solve(context.Background(), onDevices(b, g, workload, 64), planner.Settings{})
				if err != nil || sol.Status != planner.Optimal {
					b.Fatalf("%v, %v", sol, err)
				}
			}
		})
	}
}
