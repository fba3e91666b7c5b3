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
	run := replay{
		Problem: problem, Replayed: Replayed{Peaks: make([]int64, len(problem.Caps))},
		ends: make([][]int64, len(problem.Chunks)*int(kinds)), free: make([]int64, len(problem.Caps)), used: make([]int64, len(problem.Caps)),
	}
	for i := range run.ends {
		run.ends[i] = make([]int64, 0, problem.MicroBatches)
	}
	if len(order) != len(problem.Caps) {
		return run.Replayed, fmt.Errorf("orders: rows of %d GPUs, not %d", len(order), len(problem.Caps))
	}
	at := make([]int, len(order))
	for moved := true; moved; {
		moved = false
		for gpu, row := range order {
			for ; at[gpu] < len(row); at[gpu]++ {
				ran, err := run.pass(gpu, row[at[gpu]])
				if err != nil {
					return run.Replayed, err
				}
				if !ran {
					break
				}
				moved = true
			}
		}
	}
	for i := range run.ends {
		if Kind(i%int(kinds)) < problem.perChunk() && len(run.ends[i]) < problem.MicroBatches {
			return run.Replayed, fmt.Errorf("orders: %v is missing, or waits in a cycle", Pass{Kind(i % int(kinds)), i / int(kinds)})
		}
	}
	return run.Replayed, nil
}

// replay is how far an order has run.
type replay struct {
	*Problem
	Replayed
	ends       [][]int64 // by [index], of the micro-batches that have run
	free, used []int64   // by GPU
}

// pass runs a GPU's next pass. It reports false if the pass waits for its input.
func (run *replay) pass(gpu int, pass Pass) (ran bool, err error) {
	if pass.Kind >= run.perChunk() || pass.Chunk < 0 || pass.Chunk >= len(run.Chunks) || run.Chunks[pass.Chunk].GPU != gpu {
		return false, fmt.Errorf("orders: GPU %d has no pass %v", gpu, pass)
	}
	number, start := len(run.ends[index(pass)]), run.free[gpu]
	if number == run.MicroBatches {
		return false, fmt.Errorf("orders: GPU %d runs %v more than %d times", gpu, pass, run.MicroBatches)
	}
	if earlier, wait, waits := run.before(pass); waits {
		if len(run.ends[index(earlier)]) <= number {
			return false, nil
		}
		start = max(start, run.ends[index(earlier)][number]+wait)
	}
	chunk := &run.Chunks[pass.Chunk]
	run.used[gpu] += chunk.begins(pass.Kind)
	run.Peaks[gpu] = max(run.Peaks[gpu], run.used[gpu])
	if run.used[gpu] > run.Caps[gpu] {
		return false, fmt.Errorf("orders: GPU %d holds %d bytes of %d", gpu, run.used[gpu], run.Caps[gpu])
	}
	run.used[gpu] -= run.frees(chunk, pass.Kind)
	run.free[gpu] = start + chunk.takes(pass.Kind)
	run.ends[index(pass)] = append(run.ends[index(pass)], run.free[gpu])
	run.Length = max(run.Length, run.free[gpu])
	return true, nil
}
