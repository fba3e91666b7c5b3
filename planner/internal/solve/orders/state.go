package orders

import "slices"

// state is how far an order has got.
type state struct {
	ran   []int     // by [index]
	ends  [][]int64 // by [index] and micro-batch
	free  []int64   // by GPU
	used  []int64   // of the rings, by GPU
	least []int64   // the same with one set of each
	sets  []int     // of the rings, by [index] of the passes that begin and end their use
}

func newState(problem *Problem) state {
	count, least := len(problem.Chunks)*int(kinds), problem.LeastCaps()
	out := state{ran: make([]int, count), ends: make([][]int64, count), free: make([]int64, len(problem.Caps)), used: slices.Clone(least), least: least, sets: slices.Repeat([]int{1}, count)}
	for i := range out.ends {
		out.ends[i] = make([]int64, problem.MicroBatches)
	}
	return out
}

// clear goes back to the beginning.
func (state *state) clear() {
	clear(state.ran)
	clear(state.free)
	copy(state.used, state.least)
	for i := range state.sets {
		state.sets[i] = 1
	}
}

// start records a pass and returns its end.
func (state *state) start(problem *Problem, gpu int, now int64, pass Pass) int64 {
	at := index(pass)
	end := now + problem.Chunks[pass.Chunk].takes(pass.Kind)
	if bytes := state.more(problem, pass); bytes > 0 {
		state.used[gpu] += bytes
		state.grow(problem, pass)
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

// more returns the bytes of the sets that a pass adds to the rings at its start.
func (state *state) more(problem *Problem, pass Pass) (bytes int64) {
	chunk, at := &problem.Chunks[pass.Chunk], pass.Chunk*int(kinds)
	ran, sets := state.ran[at:at+int(kinds)], state.sets[at:at+int(kinds)]
	switch pass.Kind {
	case Forward:
		if ran[Forward]-ran[Input] >= sets[toInput] {
			bytes = chunk.ToInput
		}
		if ran[Forward]-ran[chunk.kinds()-1] >= sets[toWeight] {
			bytes += chunk.ToWeight
		}
	case Input:
		if !chunk.Joint && ran[Input]-ran[Weight] >= sets[between] {
			bytes = chunk.Between
		}
	case Weight, kinds:
	}
	return bytes
}

// grow adds these sets. It repeats the cases of more: with one function for both, trials take 1.5
// times as long.
func (state *state) grow(problem *Problem, pass Pass) {
	chunk, at := &problem.Chunks[pass.Chunk], pass.Chunk*int(kinds)
	ran, sets := state.ran[at:at+int(kinds)], state.sets[at:at+int(kinds)]
	switch pass.Kind {
	case Forward:
		sets[toInput] = max(sets[toInput], ran[Forward]-ran[Input]+1)
		sets[toWeight] = max(sets[toWeight], ran[Forward]-ran[chunk.kinds()-1]+1)
	case Input:
		sets[between] = max(sets[between], ran[Input]-ran[Weight]+1)
	case Weight, kinds:
	}
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
