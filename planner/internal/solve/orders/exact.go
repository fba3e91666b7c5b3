package orders

import (
	"cmp"
	"context"
	"slices"
)

// searcher is a branch and bound over all orders. It decides pass by pass in the order of time. The
// GPU that can act first runs one of the passes whose input is there, or waits for the next input.
// Two states with the same passes run are compared: one that is at no point later replaces the
// other.
type searcher struct {
	*Problem
	state
	chunks [][]int
	way    *paths
	best   int64 // an order must be shorter
	found  Order
	rows   Order
	left   int     // passes that have not run
	slept  []int64 // by GPU: it chose to wait at this time; −1
	seen   map[string][][]int64
	nodes  int
	most   int // nodes
	stored int
	ctx    context.Context
	ended  bool
}

// search returns the shortest order below a length; nil: there is none, if it was complete.
func (problem *Problem) search(ctx context.Context, below int64, most int) (order Order, length int64, complete bool, nodes int) {
	search := &searcher{
		Problem: problem, state: newState(problem), chunks: problem.of(), way: newPaths(problem), best: below, most: most, ctx: ctx,
		rows: make(Order, len(problem.Caps)), slept: slices.Repeat([]int64{-1}, len(problem.Caps)), seen: map[string][][]int64{},
		left: problem.passes(),
	}
	search.branch(0, false)
	return search.found, search.best, !search.ended, search.nodes
}

// wake returns when a GPU can act.
func (search *searcher) wake(gpu int) int64 {
	at := int64(never)
	for _, i := range search.chunks[gpu] {
		for kind := range search.Chunks[i].kinds() {
			pass := Pass{kind, i}
			comes := search.comes(search.Problem, pass)
			if comes == never || comes <= search.slept[gpu] || !search.fits(search.Problem, pass) {
				continue
			}
			at = min(at, max(comes, search.free[gpu]))
		}
	}
	return at
}

// branch tries all ways to complete the order so far. length is the end of its passes. waited: a GPU
// chose to wait, and no pass was added since the last call.
func (search *searcher) branch(length int64, waited bool) {
	if search.left == 0 {
		if length < search.best {
			search.best, search.found = length, search.rows.clone()
		}
		return
	}
	search.nodes++
	if search.nodes > search.most || search.nodes%256 == 0 && search.ctx.Err() != nil {
		search.ended = true
	}
	if search.ended {
		return
	}
	wakes := make([]int64, len(search.Caps))
	gpu, now := -1, int64(never)
	for other := range wakes {
		if wakes[other] = search.wake(other); wakes[other] < now {
			gpu, now = other, wakes[other]
		}
	}
	if gpu < 0 || search.below(length, wakes) >= search.best || !waited && search.dominated() {
		return
	}
	ready, later := search.ready(gpu, now)
	for _, pass := range ready {
		search.run(gpu, now, pass, length)
	}
	if later {
		was := search.slept[gpu]
		search.slept[gpu] = now
		search.branch(length, true)
		search.slept[gpu] = was
	}
}

// run runs a pass, and all that may follow.
func (search *searcher) run(gpu int, now int64, pass Pass, length int64) {
	free, used, slept := search.free[gpu], search.used[gpu], search.slept[gpu]
	rings := search.sets[pass.Chunk*int(kinds):][:kinds]
	sets := [kinds]int(rings)
	end := search.start(search.Problem, gpu, now, pass)
	search.rows[gpu] = append(search.rows[gpu], pass)
	search.slept[gpu] = -1
	search.left--
	search.branch(max(length, end), false)
	search.left++
	search.ran[index(pass)]--
	search.rows[gpu] = search.rows[gpu][:len(search.rows[gpu])-1]
	search.free[gpu], search.used[gpu], search.slept[gpu] = free, used, slept
	copy(rings, sets[:])
}

// ready returns the passes that a GPU can start now, the most urgent first, and whether another input
// can come later.
func (search *searcher) ready(gpu int, now int64) (out []Pass, later bool) {
	for _, i := range search.chunks[gpu] {
		for kind := range search.Chunks[i].kinds() {
			pass := Pass{kind, i}
			if search.ran[index(pass)] == search.MicroBatches {
				continue
			}
			comes := search.comes(search.Problem, pass)
			if comes <= now {
				if search.fits(search.Problem, pass) {
					out = append(out, pass)
				}
				continue
			}
			earlier, _, _ := search.before(pass)
			later = later || comes < never || search.Chunks[earlier.Chunk].GPU != gpu
		}
	}
	slices.SortFunc(out, func(a, b Pass) int {
		return cmp.Compare(search.way.tail[b.Chunk][b.Kind], search.way.tail[a.Chunk][a.Kind])
	})
	return out, later
}

// below returns a lower bound of all orders that begin like this one.
func (search *searcher) below(length int64, wakes []int64) int64 {
	best := length
	for gpu, chunks := range search.chunks {
		head := max(search.free[gpu], min(wakes[gpu], slices.Min(wakes)+1)) // an input from now on can wake it
		for _, i := range chunks {
			for kind := range search.Chunks[i].kinds() {
				least := search.way.tail[i][kind]
				work := int64(0)
				for _, j := range chunks {
					for other := range search.Chunks[j].kinds() {
						pass := Pass{other, j}
						count := search.MicroBatches - search.ran[index(pass)]
						if count > 0 && search.way.tail[j][other] >= least {
							work += int64(count) * search.Chunks[j].takes(other)
						}
					}
				}
				if work > 0 {
					best = max(best, head+work+least)
				}
			}
		}
	}
	return best
}
