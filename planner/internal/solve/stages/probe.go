package stages

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/multichoice"
)

// probe is one question: is there a pipeline of at most so many stages, each
// within the limit and the capacity? Sets are reached from the end of the
// graph; only the fewest stages to reach a set count, because fewer keep fewer
// micro-batches in flight before it and leave more devices.
type probe struct {
	*search
	limit  float64
	stages int
	// level is the fewest stages after a set, 0 where it was not reached (the
	// full set needs none); after is the set where the next stage begins.
	level, after []int32
	// next is the least time above the limit, nextMemory the least memory
	// above the capacity, that any refused stage would have needed: between
	// the limit and it the answer cannot change.
	next, nextMemory float64
	stopped          bool
	// open: a stage was let pass on the bound of its knapsack alone.
	open bool

	stage       int
	view        *multichoice.View
	fast, least []float64 // memory of sets, of the fastest and the smallest choices
	delta       []float64
}

func (within *search) question(limit float64, stages int) *probe {
	return &probe{
		search: within, limit: limit, stages: stages, level: make([]int32, within.sets.Len()), after: make([]int32, within.sets.Len()),
		next: math.Inf(1), nextMemory: math.Inf(1),
	}
}

// probe answers where time, transfers and memory count.
func (within *search) probe(ctx context.Context, limit float64, stages int) *probe {
	attempt := within.question(limit, stages)
	attempt.delta = make([]float64, len(within.network.Order))
	front := []int32{0}
	for attempt.stage = 1; attempt.stage <= stages && len(front) > 0 && !attempt.reached(); attempt.stage++ {
		attempt.look(attempt.stage)
		var reached []int32
		for i, upper := range front {
			if i%8 == 0 && ctx.Err() != nil {
				attempt.stopped = true
				return attempt
			}
			reached = attempt.below(int(upper), reached)
		}
		front = reached
	}
	return attempt
}

func (attempt *probe) reached() bool { return attempt.level[attempt.sets.Empty] > 0 }

// look takes the view of the stage that is y-th from the end.
func (attempt *probe) look(stage int) {
	if math.IsInf(attempt.capacity, 1) && stage > 1 {
		return
	}
	attempt.view = attempt.search.view(stage)
	attempt.fast = attempt.sums(func(node int) float64 { _, memory := attempt.view.Nodes[node].Fastest(); return memory })
	attempt.least = attempt.sums(func(node int) float64 { return attempt.view.Nodes[node].Least() })
}

// below reaches the sets that one stage takes the upper set to.
func (attempt *probe) below(upper int, reached []int32) []int32 {
	if attempt.stage == attempt.stages { // the last stage has to take all that is left
		if attempt.allowed(upper, attempt.sets.Empty, attempt.sends[upper]) {
			reached = attempt.reach(upper, attempt.sets.Empty, reached)
		}
		return reached
	}
	attempt.cross(upper)
	attempt.walk++
	attempt.stack = append(attempt.stack[:0], int32(upper))
	attempt.transfers[upper] = 0
	left := float64(attempt.stages - attempt.stage)
	for len(attempt.stack) > 0 {
		at := attempt.stack[len(attempt.stack)-1]
		attempt.stack = attempt.stack[:len(attempt.stack)-1]
		for _, b := range attempt.sets.Below[at] {
			if attempt.met[b.To] == attempt.walk {
				continue
			}
			attempt.met[b.To] = attempt.walk
			if !attempt.room(upper, int(b.To)) {
				continue
			}
			attempt.stack = append(attempt.stack, b.To)
			attempt.transfers[b.To] = attempt.transfers[at] + attempt.delta[b.Node]
			if attempt.level[b.To] > 0 {
				continue
			}
			// The stages before have to run what is left, and to send from it.
			if rest := attempt.fastest[b.To] + attempt.sends[b.To]; rest > left*attempt.limit*(1+rounding) {
				attempt.next = min(attempt.next, rest/left)
				continue
			}
			if attempt.allowed(upper, int(b.To), attempt.transfers[b.To]) {
				reached = attempt.reach(upper, int(b.To), reached)
			}
		}
	}
	return reached
}

func (attempt *probe) reach(upper, lower int, reached []int32) []int32 {
	attempt.level[lower], attempt.after[lower] = int32(attempt.stage), int32(upper)
	return append(reached, int32(lower))
}

// room is false where neither this stage nor a larger one can be: time and
// memory of the nodes alone are too much.
func (attempt *probe) room(upper, lower int) bool {
	if time := attempt.fastest[upper] - attempt.fastest[lower]; time > attempt.limit*(1+rounding) {
		attempt.next = min(attempt.next, time)
		return false
	}
	if memory := attempt.least[upper] - attempt.least[lower]; memory > attempt.capacity*(1+rounding) {
		attempt.nextMemory = min(attempt.nextMemory, memory)
		return false
	}
	return true
}
