package bind_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

var cuts = flag.Int("cuts", 1, "ways to cut each model in TestBits")

// TestBits: for any cut, schedule and order that waits allow, a program shows and leaves the same
// bits as one device without recompute. Everything that a kernel reads is there completely, in the
// type in which it was written.
func TestBits(t *testing.T) {
	t.Parallel()
	for number, family := range slices.Sorted(maps.Keys(backendtest.Families)) {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			graph := fixtures.Must(backendtest.Graph(backendtest.Families[family]))(t)
			random := rand.New(rand.NewPCG(12, uint64(number)))
			for _, name := range slices.Sorted(maps.Keys(backendtest.Workloads())) {
				workload := backendtest.Workloads()[name]
				if workload.Mode == costmodel.Load || backendtest.Forwards(family) && (workload.Mode == costmodel.Train || workload.NewTokens > 0) {
					continue
				}
				compareCuts(t, name, graph, workload, random)
			}
		})
	}
}

// compareCuts compares a model on one device with the same model cut at random.
func compareCuts(t *testing.T, name string, graph *modelgraph.Graph, workload costmodel.Workload, random *rand.Rand) {
	t.Helper()
	parts := 1 + 2*random.Int64N(2)
	single := workload
	single.Recompute = ""
	one := fixtures.Must(backendtest.Cut{Devices: 1, Schedule: costmodel.OneFOneB, MicroBatches: parts}.Job(graph, single))(t)
	want := interpret(t, name, one, random)
	for range *cuts {
		cut := backendtest.Cut{Devices: 1 + random.IntN(4), Schedule: backendtest.Schedules[random.IntN(len(backendtest.Schedules))], MicroBatches: parts, Seed: random.Uint64()}
		label := fmt.Sprintf("%s %+v", name, cut)
		job, err := cut.Job(graph, workload)
		if err != nil {
			t.Fatalf("%s: %v", label, err)
		}
		got := interpret(t, label, job, random)
		for key, values := range want {
			if !equal(got[key], values) {
				t.Fatalf("%s: %s differs", label, key)
			}
		}
	}
}
