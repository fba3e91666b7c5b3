package boundprice

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundwindow"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// looked ends after so many looks at it, whatever the machine is busy with.
type looked struct {
	context.Context //nolint:containedctx // it is one

	left int
}

func (turn *looked) Err() error {
	turn.left--
	if turn.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// inTurns is Refute in turns of so many looks, and how many of them left the trial open.
func inTurns(t *testing.T, stages *Stages, limit float64, first, last []int, looks int) (proof *boundcheck.Proof, opened int) {
	t.Helper()
	turn := &looked{context.Background(), looks}
	proof = stages.Refute(turn, limit, first, last, 30_000_000)
	for turn.left < 0 && proof == nil {
		if !stages.Open() {
			t.Fatalf("a turn ends in the midst of a trial of %v, which is not open then", limit)
		}
		opened++
		rounds := stages.last.rounds
		turn = &looked{context.Background(), looks}
		if proof = stages.Resume(turn); stages.last.rounds == rounds {
			t.Fatalf("a turn goes on with a trial of %v, and asks for nothing", limit)
		}
	}
	if stages.Open() {
		t.Fatalf("a trial of %v has ended, and is open", limit)
	}
	return proof, opened
}

// TestResume: a trial that a turn has no time for is open, and the turns that go on with
// it refute what one without an end does, mostly: what a turn breaks off is asked again at
// other prices of a byte.
func TestResume(t *testing.T) {
	t.Parallel()
	opened, refuted, lost := 0, 0, 0
	for seed := range uint64(60) {
		problem := graphtest.NearChain(rand.New(rand.NewPCG(seed, 81)), 8, 3, graph.Kind{Count: 3, Capacity: math.Inf(1)})
		least := graphtest.LeastContiguous(problem)
		before, after := make([][]int, len(problem.Nodes)), make([][]int, len(problem.Nodes))
		for _, edge := range problem.Edges {
			after[edge[0]], before[edge[1]] = append(after[edge[0]], edge[1]), append(before[edge[1]], edge[0])
		}
		nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
		cones, kind := boundwindow.NewCones(nets, before, after)
		for _, part := range []float64{0.97, 0.999} {
			limit := part * least
			first, last := cones.Windows(limit * (1 + 1e-8))
			whole := NewStages(context.Background(), nets, kind).Refute(context.Background(), limit, first, last, 30_000_000)
			proof, turns := inTurns(t, NewStages(context.Background(), nets, kind), limit, first, last, 40)
			if proof == nil && whole != nil {
				lost++
			}
			if proof == nil || turns == 0 {
				continue
			}
			refuted++
			opened += turns
			if err := boundcheck.CheckStages(context.Background(), problem, proof); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
	if refuted < 30 || opened < 30 || lost > refuted/10 {
		t.Errorf("%d loads refuted in turns, %d of which left a trial open; %d lost that one turn refutes", refuted, opened, lost)
	}
}
