package stagememory_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
	"github.com/devmap-dev/devmap/planner/internal/stagememory"
)

// TestProve: the proof finds the best of all cuts from any first cuts. The test tries all cuts one
// by one.
func TestProve(t *testing.T) {
	t.Parallel()
	loops, improved := 0, 0
	for seed := range uint64(randomproblem.Samples(200)) {
		problem, err := randomproblem.Pipeline(rand.New(rand.NewPCG(seed, 78)))
		if err != nil {
			t.Fatal(seed, err)
		}
		if problem.Costs.Workload.Schedule != costmodel.Interleaved {
			continue
		}
		problem.Objective = planner.Memory
		proof, err := stagememory.ProofOf(t.Context(), randomproblem.Instance(t, &problem), rand.New(rand.NewPCG(seed, 79)))
		if err != nil {
			continue // more stages than units
		}
		if !proof.Proved || math.Abs(proof.Found-proof.Least) > 1e-9*proof.Least {
			t.Fatalf("%d: from %v: %v (proved %t), the least of all is %v", seed, proof.Start, proof.Found, proof.Proved, proof.Least)
		}
		loops++
		if proof.Found < proof.Start {
			improved++
		}
	}
	if improved < loops/5 || loops < 10 {
		t.Errorf("%d of %d proofs found better cuts", improved, loops)
	}
}

// TestInterleavedProved: a pipeline with too many cuts to try all is proved.
func TestInterleavedProved(t *testing.T) {
	deep := strings.Replace(randomproblem.SixBlocks, `"num_hidden_layers": 6`, `"num_hidden_layers": 24`, 1)
	problem := randomproblem.PipelineOf(t, deep, 4, costmodel.Workload{Mode: costmodel.Train, Schedule: costmodel.Interleaved, Batch: 8, MicroBatches: 8, Seq: 512, VirtualStages: 2})
	if len(problem.Graph.Units) < 24 {
		t.Fatalf("%d units", len(problem.Graph.Units))
	}
	solution, err := planner.Solve(t.Context(), problem, planner.Settings{})
	if err != nil || solution.Status != planner.Optimal || solution.Bound != "search" {
		t.Errorf("%+v, %v", solution.Certificate, err)
	}
}

// TestInterleavedEffort: a larger limit gives a longer proof. A small limit ends the proof after a
// number of ends, not by the clock, and the answer is always the same.
func TestInterleavedEffort(t *testing.T) {
	t.Parallel()
	deep := strings.Replace(randomproblem.SixBlocks, `"num_hidden_layers": 6`, `"num_hidden_layers": 24`, 1)
	problem := randomproblem.PipelineOf(t, deep, 4, costmodel.Workload{Mode: costmodel.Train, Schedule: costmodel.Interleaved, Batch: 8, MicroBatches: 8, Seq: 512, VirtualStages: 2})
	in := randomproblem.Instance(t, &problem)
	for effort, want := range map[int]bool{10: false, 1 << 30: true} {
		first, err := stagememory.ProofWithin(t.Context(), in, effort)
		if err != nil {
			t.Fatal(err)
		}
		again, err := stagememory.ProofWithin(t.Context(), in, effort)
		if err != nil || first.Proved != want || first != again {
			t.Errorf("%d ends: %+v, then %+v (%v)", effort, first, again, err)
		}
	}
	if a, b := stagememory.ProofEnds(time.Second), stagememory.ProofEnds(59700*time.Millisecond); a != 500_000 || b != 60*a || stagememory.ProofEnds(0) != 10*a {
		t.Errorf("%d and %d ends", a, b)
	}
}
