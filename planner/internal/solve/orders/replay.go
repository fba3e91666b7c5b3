package orders

import "fmt"

// Replayed is an order in time.
type Replayed struct {
	Length int64   // from the first pass to the end of the last
	Peaks  []int64 // the most bytes used, by GPU
}

// Replay runs an order: a pass starts when its GPU is free and its input is there. It returns an
// error for an order that is not complete, has a cycle or exceeds a cap.
func (problem *Problem) Replay(order Order) (Replayed, error) {
	out := Replayed{Peaks: make([]int64, len(problem.Caps))}
	state, at := newState(problem), make([]int, len(problem.Caps))
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
				comes := state.comes(problem, pass)
				if comes == never {
					break
				}
				used := state.used[gpu] + problem.Chunks[pass.Chunk].begins(pass.Kind)
				if out.Peaks[gpu] = max(out.Peaks[gpu], used); used > problem.Caps[gpu] {
					return out, fmt.Errorf("orders: GPU %d holds %d bytes of %d", gpu, used, problem.Caps[gpu])
				}
				end := state.start(problem, gpu, max(comes, state.free[gpu]), pass)
				out.Length, moved = max(out.Length, end), true
			}
		}
	}
	for i, ran := range state.ran {
		if Kind(i%int(kinds)) < problem.perChunk() && ran < problem.MicroBatches {
			return out, fmt.Errorf("orders: %v is missing, or waits in a cycle", Pass{Kind(i % int(kinds)), i / int(kinds)})
		}
	}
	return out, nil
}

// has reports that a pass is one of a GPU's.
func (problem *Problem) has(gpu int, pass Pass) bool {
	return pass.Kind < problem.perChunk() && pass.Chunk >= 0 && pass.Chunk < len(problem.Chunks) && problem.Chunks[pass.Chunk].GPU == gpu
}
