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
	ends := make([][]int64, len(problem.Chunks)*int(kinds))
	for i := range ends {
		ends[i] = make([]int64, 0, problem.MicroBatches)
	}
	free, used, at := make([]int64, len(problem.Caps)), make([]int64, len(problem.Caps)), make([]int, len(problem.Caps))
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
				number, start := len(ends[index(pass)]), free[gpu]
				if number == problem.MicroBatches {
					return out, fmt.Errorf("orders: GPU %d runs %v more than %d times", gpu, pass, problem.MicroBatches)
				}
				if earlier, wait, waits := problem.before(pass); waits {
					if len(ends[index(earlier)]) <= number {
						break
					}
					start = max(start, ends[index(earlier)][number]+wait)
				}
				chunk := &problem.Chunks[pass.Chunk]
				used[gpu] += chunk.begins(pass.Kind)
				if out.Peaks[gpu] = max(out.Peaks[gpu], used[gpu]); used[gpu] > problem.Caps[gpu] {
					return out, fmt.Errorf("orders: GPU %d holds %d bytes of %d", gpu, used[gpu], problem.Caps[gpu])
				}
				used[gpu] -= problem.frees(chunk, pass.Kind)
				free[gpu] = start + chunk.takes(pass.Kind)
				ends[index(pass)] = append(ends[index(pass)], free[gpu])
				out.Length, moved = max(out.Length, free[gpu]), true
			}
		}
	}
	for i := range ends {
		if Kind(i%int(kinds)) < problem.perChunk() && len(ends[i]) < problem.MicroBatches {
			return out, fmt.Errorf("orders: %v is missing, or waits in a cycle", Pass{Kind(i % int(kinds)), i / int(kinds)})
		}
	}
	return out, nil
}

// has reports that a pass is one of a GPU's.
func (problem *Problem) has(gpu int, pass Pass) bool {
	return pass.Kind < problem.perChunk() && pass.Chunk >= 0 && pass.Chunk < len(problem.Chunks) && problem.Chunks[pass.Chunk].GPU == gpu
}
