package orders

import (
	"context"
	"math/rand/v2"
	"testing"
)

// Moves of single passes make the order of one micro-batch after the other much shorter, within the
// caps.
func TestMoves(t *testing.T) {
	random, shorter := rand.New(rand.NewPCG(45, 2)), 0
	const problems = 20
	ended, end := context.WithCancel(t.Context())
	end()
	for range problems {
		problem := Problem{MicroBatches: 6, Ahead: 2, Caps: []int64{12, 12, 12}}
		solution := &Solution{Order: make(Order, 3)}
		for gpu := range problem.Caps {
			problem.Chunks = append(problem.Chunks, Chunk{GPU: gpu, Forward: 2 + random.Int64N(3), Input: 2 + random.Int64N(3), Weight: random.Int64N(4), ToInput: 1, ToWeight: 2, Between: 1})
			for range problem.MicroBatches {
				solution.Order[gpu] = append(solution.Order[gpu], Pass{Forward, gpu}, Pass{Input, gpu}, Pass{Weight, gpu})
			}
		}
		var err error
		if solution.Replayed, err = problem.Replay(solution.Order); err != nil {
			t.Fatal(err)
		}
		before := solution.Length
		solution.byMoves(ended, &problem, 3000)
		if solution.Length != before {
			t.Errorf("%d after %d, though the context has ended", solution.Length, before)
		}
		solution.byMoves(t.Context(), &problem, 3000)
		if got, err := problem.Replay(solution.Order); err != nil || got.Length != solution.Length {
			t.Errorf("%+v: length %d, replayed %d: %v", problem, solution.Length, got.Length, err)
		}
		if 10*solution.Length < 8*before {
			shorter++
		}
	}
	if shorter < problems {
		t.Errorf("%d of %d orders are a fifth shorter", shorter, problems)
	}
}
