package orders

import "slices"

// state is how far an order has got.
type state struct {
	ran  []int     // by [index]
	ends [][]int64 // by [index] and micro-batch
	free []int64   // by GPU
	used []int64   // of the rings, by GPU
	sets []int     // of the rings, by [index] of the passes that begin and end their use
}

func newState(problem *Problem) state {
	count := len(problem.Chunks) * int(kinds)
	out := state{ran: make([]int, count), ends: make([][]int64, count), free: make([]int64, len(problem.Caps)), used: problem.LeastCaps(), sets: slices.Repeat([]int{1}, count)}
	for i := range out.ends {
		out.ends[i] = make([]int64, problem.MicroBatches)
	}
	return out
}

// clear goes back to the beginning.
func (state *state) clear(problem *Problem) {
	clear(state.ran)
	clear(state.free)
	clear(state.used)
	for i := range problem.Chunks {
		chunk := &problem.Chunks[i]
		state.used[chunk.GPU] += chunk.ToInput + chunk.ToWeight + chunk.Between
	}
	for i := range state.sets {
		state.sets[i] = 1
	}
}

// start records a pass and returns its end.
func (state *state) start(problem *Problem, gpu int, now int64, pass Pass) int64 {
	at := index(pass)
	end := now + problem.Chunks[pass.Chunk].takes(pass.Kind)
	state.used[gpu] += state.more(problem, pass)
	for ring, count := range state.uses(problem, pass) {
		state.sets[pass.Chunk*int(kinds)+ring] = max(state.sets[pass.Chunk*int(kinds)+ring], count)
	}
	state.ends[at][state.ran[at]] = end
	state.ran[at]++
	state.free[gpu] = end
	return end
}

// The rings of a chunk.
const (
	toInput = iota
	toWeight
	between
)

// rings returns the bytes of a set of each.
func (chunk *Chunk) rings() [kinds]int64 {
	return [kinds]int64{toInput: chunk.ToInput, toWeight: chunk.ToWeight, between: chunk.Between}
}

// uses returns how many sets of each ring of a chunk are in use at the start of a pass, with its own;
// 0 for rings whose use it does not begin.
func (state *state) uses(problem *Problem, pass Pass) (out [kinds]int) {
	ran := state.ran[pass.Chunk*int(kinds):]
	switch pass.Kind {
	case Forward:
		out[toInput] = ran[Forward] - ran[Input] + 1
		out[toWeight] = ran[Forward] - ran[problem.Chunks[pass.Chunk].kinds()-1] + 1
	case Input:
		out[between] = ran[Input] - ran[Weight] + 1
	}
	return out
}

// more returns the bytes of the sets that a pass adds to the rings.
func (state *state) more(problem *Problem, pass Pass) (bytes int64) {
	if pass.Kind == Weight {
		return 0
	}
	each, sets := problem.Chunks[pass.Chunk].rings(), state.sets[pass.Chunk*int(kinds):]
	for ring, count := range state.uses(problem, pass) {
		if count > sets[ring] {
			bytes += each[ring]
		}
	}
	return bytes
}

// fits reports that a GPU has room for a pass. The oldest micro-batch of all always has: it uses the
// first set of each ring.
func (state *state) fits(problem *Problem, pass Pass) bool {
	gpu := problem.Chunks[pass.Chunk].GPU
	return state.used[gpu]+state.more(problem, pass) <= problem.Caps[gpu]
}

// comes returns when the input of a pass is there; never: its sender has not run yet, or the pass
// has run for all micro-batches.
func (state *state) comes(problem *Problem, pass Pass) int64 {
	number := state.ran[index(pass)]
	if number == problem.MicroBatches {
		return never
	}
	earlier, wait, waits := problem.before(pass)
	if !waits {
		return 0
	}
	if state.ran[index(earlier)] <= number {
		return never
	}
	return state.ends[index(earlier)][number] + wait
}
