package strategy_test

import (
	"math"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestRowsOfDegrees: a pipeline's row with stages of several GPUs counts the tokens of all
// replicas. Its step is the stages', fixed or chosen.
func TestRowsOfDegrees(t *testing.T) {
	graph := fixtures.Must(load.Model("llama-3.2-1b", load.Options{BuiltIn: fixtures.Models()}))(t)
	gpu := costmodel.Device{
		Name: "GPU", CapacityBytes: 80 << 30, FLOPS: 4e14, WorkspaceBytes: 32 << 20,
		Rates: costmodel.Rates{BytesPerSecond: 3e12, CollectiveBytesPerSecond: 2e11, LinkBytesPerSecond: 2e11},
	}
	for degree, tokens := range map[string]int64{"2": 2 * 8 * 1024, "auto": 8 * 1024} {
		workload := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Batch: 8, MicroBatches: 4, Seq: 1024, Precision: costmodel.BF16True}
		if err := workload.DP.Set(degree); err != nil {
			t.Fatal(err)
		}
		problem := planner.Problem{Graph: graph, Workload: workload, Topology: &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu}, 4)}, Objective: planner.Time}
		rows := fixtures.Must(strategy.Rows(t.Context(), problem, strategy.Options{}))(t)
		found := 0
		for _, row := range rows {
			if row.Refused != nil { // interleaved
				continue
			}
			found++
			if row.Tokens != tokens {
				t.Errorf("dp %s: %d tokens a step, want %d", degree, row.Tokens, tokens)
			}
			if row.StepSeconds == nil || math.Abs(*row.StepSeconds-row.Solution.Value) > 1e-9*row.Solution.Value {
				t.Errorf("dp %s: a step of %v, and the solution says %v", degree, row.StepSeconds, row.Solution.Value)
			}
		}
		if found == 0 {
			t.Errorf("dp %s: no rows", degree)
		}
	}
}
