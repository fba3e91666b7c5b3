package orders

import (
	"fmt"
	"math"
)

// Replayed is an order in time.
type Replayed struct {
	Length int64   // from the first pass to the end of the last
	Peaks  []int64 // of the rings, by GPU
	ends   int64   // of all passes, added up
}

// Replay runs an order: a pass starts when its GPU is free and its input is there. It returns an
// error for an order that is not complete, has a cycle or exceeds a cap.
func (problem *Problem) Replay(order Order) (Replayed, error) {
	return problem.replay(order, math.MaxInt)
}

// replay also waits for the receiver of a message, if a chunk is so many passes ahead of it.
func (problem *Problem) replay(order Order, ahead int) (Replayed, error) {
	state, at := newState(problem), make([]int, len(problem.Caps))
	out := Replayed{Peaks: state.used}
	if len(order) != len(problem.Caps) {
		return out, fmt.Errorf("orders: rows of %d GPUs, not %d", len(order), len(problem.Caps))
	}
	for moved := true; moved; {
		moved = false
		for gpu, row := range order {
			for ; at[gpu] < len(row); at[gpu]++ {
				pass := row[at[gpu]]
				if !problem.has(gpu, pass) {
					return out, fmt.Errorf("orders: GPU %d has no pass %v", gpu, pass)
				}
				if state.ran[index(pass)] == problem.MicroBatches {
					return out, fmt.Errorf("orders: GPU %d runs %v more than %d times", gpu, pass, problem.MicroBatches)
				}
				comes := max(state.comes(problem, pass), state.opens(problem, pass, ahead))
				if comes == never {
					break
				}
				if !state.fits(problem, pass) {
					return out, fmt.Errorf("orders: the rings of GPU %d have more than %d bytes", gpu, problem.Caps[gpu])
				}
				end := state.start(problem, gpu, max(comes, state.free[gpu]), pass)
				out.Length, out.ends, moved = max(out.Length, end), out.ends+end, true
			}
		}
	}
	for i, ran := range state.ran {
		if Kind(i%int(kinds)) < problem.Chunks[i/int(kinds)].kinds() && ran < problem.MicroBatches {
			return out, fmt.Errorf("orders: %v is missing, or waits in a cycle", Pass{Kind(i % int(kinds)), i / int(kinds)})
		}
	}
	return out, nil
}

// opens returns when the receiver of a pass's message has taken enough of them; never: not yet.
func (state *state) opens(problem *Problem, pass Pass, ahead int) int64 {
	number := state.ran[index(pass)] - ahead
	next, sends := problem.sends(pass)
	switch {
	case number < 0 || !sends:
		return 0
	case state.ran[index(next)] <= number:
		return never
	}
	return state.ends[index(next)][number] - problem.Chunks[next.Chunk].takes(next.Kind)
}

// has reports that a pass is one of a GPU's.
func (problem *Problem) has(gpu int, pass Pass) bool {
	return pass.Chunk >= 0 && pass.Chunk < len(problem.Chunks) && problem.Chunks[pass.Chunk].GPU == gpu && pass.Kind < problem.Chunks[pass.Chunk].kinds()
}
