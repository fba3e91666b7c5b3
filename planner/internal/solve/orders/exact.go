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
	ready, soon := search.ready(gpu, now, wakes)
	for _, pass := range ready {
		search.run(gpu, now, pass, length)
	}
	if search.mayWait(gpu, now, soon, ready) {
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

// ready returns the passes that a GPU can start now, the most urgent first, and the earliest time at
// which another input can be there.
func (search *searcher) ready(gpu int, now int64, wakes []int64) (out []Pass, soon int64) {
	soon = never
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
			if comes == never { // after a pass that another GPU has not started
				earlier, wait, _ := search.before(pass)
				from := search.Chunks[earlier.Chunk].GPU
				if from == gpu {
					continue
				}
				comes = min(wakes[from], never/2) + search.Chunks[earlier.Chunk].takes(earlier.Kind) + wait
				comes = max(now+1, min(comes, now+search.Chunks[earlier.Chunk].takes(earlier.Kind)+wait))
			}
			soon = min(soon, comes)
		}
	}
	slices.SortFunc(out, func(a, b Pass) int {
		return cmp.Compare(search.way.tail[b.Chunk][b.Kind], search.way.tail[a.Chunk][a.Kind])
	})
	return out, soon
}

// mayWait reports that waiting can lead to an order that no pass of now does. It cannot if one ends
// before the next input, and if using its memory sooner hinders no other pass.
func (search *searcher) mayWait(gpu int, now, soon int64, ready []Pass) bool {
	if soon == never {
		return false
	}
	for _, pass := range ready {
		chunk := &search.Chunks[pass.Chunk]
		one := chunk.Between == 0 && (chunk.Joint || chunk.ToInput == 0 || chunk.ToWeight == 0) // ring
		alone := search.more(search.Problem, pass) == 0 || pass.Kind == Forward && len(search.chunks[gpu]) == 1 && one
		if alone && now+chunk.takes(pass.Kind) <= soon {
			return false
		}
	}
	return true
}

// below returns a lower bound of all orders that begin like this one.
func (search *searcher) below(length int64, wakes []int64) int64 {
	heads := search.heads(wakes)
	best := length
	for gpu, chunks := range search.chunks {
		for _, i := range chunks {
			for kind := range search.Chunks[i].kinds() {
				least := search.way.tail[i][kind]
				work, head := int64(0), int64(never)
				for _, j := range chunks {
					for other := range search.Chunks[j].kinds() {
						pass := Pass{other, j}
						count := search.MicroBatches - search.ran[index(pass)]
						if count > 0 && search.way.tail[j][other] >= least {
							work += int64(count) * search.Chunks[j].takes(other)
							head = min(head, heads[index(pass)])
						}
					}
				}
				if work > 0 {
					best = max(best, max(head, search.free[gpu])+work+least)
				}
			}
		}
	}
	return best
}

// heads returns the earliest start of the next pass of each kind.
func (search *searcher) heads(wakes []int64) []int64 {
	out := make([]int64, len(search.ran))
	visit := func(pass Pass) {
		gpu := search.Chunks[pass.Chunk].GPU
		at := max(search.free[gpu], min(wakes[gpu], never/4))
		if wakes[gpu] == never {
			at = search.free[gpu]
		}
		comes := search.comes(search.Problem, pass)
		if earlier, wait, waits := search.before(pass); comes == never && waits && search.ran[index(pass)] < search.MicroBatches {
			comes = out[index(earlier)] + search.Chunks[earlier.Chunk].takes(earlier.Kind) + wait
		}
		if comes != never {
			at = max(at, comes)
		}
		out[index(pass)] = at
	}
	for i := range search.Chunks {
		visit(Pass{Forward, i})
	}
	for i := len(search.Chunks) - 1; i >= 0; i-- {
		visit(Pass{Input, i})
		if !search.Chunks[i].Joint {
			visit(Pass{Weight, i})
		}
	}
	return out
}
