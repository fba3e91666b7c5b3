package estimate_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestStepWithoutRecomputation: the work that fixes the clock is the same for all choices of blocks, so
// that the times of units can be mixed.
func TestStepWithoutRecomputation(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"llama-3.2-1b", "gemma-2b", "gpt2"} {
		graph := fixtures.Must(load.Model(name, load.Options{BuiltIn: fixtures.Models(), Transformers: "5.20"}))(t)
		for _, kind := range costmodel.ScheduleKinds() {
			of := func(recompute, offload string) (costmodel.Pass, float64) {
				workload := fixtures.Must(estimate.Resolve(graph, costmodel.Workload{
					Mode: costmodel.Train, Runtime: costmodel.Devmap, Strategy: costmodel.Pipeline, Schedule: kind, Precision: costmodel.BF16True,
					Recompute: recompute, OffloadActivations: offload, Batch: 8, MicroBatches: 4, Seq: 512, World: 2,
				}))(t)
				table := fixtures.Must(estimate.Table(graph, workload))(t)
				return table.Step, table.StepUpdate
			}
			step, update := of("none", "")
			for _, blocks := range []string{"full", "0-1"} {
				for _, moved := range []string{"", "full"} {
					if got, bytes := of(blocks, moved); got != step || bytes != update {
						t.Errorf("%s, %v, blocks %s recomputed, %q in host memory: %+v, not %+v", name, kind, blocks, moved, got, step)
					}
				}
			}
		}
	}
}
