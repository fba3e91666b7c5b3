package planner

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// A plan that fits is no answer of the search if its step waits for the link. An H200's link moves a
// block of llama-3.1-8b in the time of several.
func TestWaitsForLink(t *testing.T) {
	t.Parallel()
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	problem := fixtures.Must(Problem{
		Graph:     fixtures.Must(hf.FromConfig("llama-3.1-8b", fixtures.Must(os.ReadFile("../fixtures/models/llama-3.1-8b/config.json"))(t)))(t),
		Objective: Time, Topology: &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu.Device(costmodel.Train)}, 2)},
		Workload: costmodel.Workload{
			Mode: costmodel.Train, Runtime: costmodel.Devmap, Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, Precision: costmodel.BF16True,
			OffloadActivations: recomputeAuto, Batch: 16, MicroBatches: 8, Seq: 2048, World: 2,
		},
	}.Resolved())(t)
	search := &hostSearch{&problem, problem.Topology, blocksOf(problem.Graph)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	found, err := search.solve(ctx, slices.Repeat([]bool{true}, len(search.blocks)))
	if found == nil || found.LargestShare > 1 || err == nil || !strings.Contains(err.Error(), "the link moves blocks more slowly than they run") {
		t.Errorf("all blocks: %v", err)
	}
	if _, err := search.solve(ctx, make([]bool, len(search.blocks))); err != nil {
		t.Errorf("no block: %v", err)
	}
}
