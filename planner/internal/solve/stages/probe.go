package stages

import (
	"context"
	"math"
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

	y           int
	view        *view
	fast, least []float64 // memory of sets, of the fastest and the smallest choices
	delta       []float64
}

func (s *search) question(limit float64, stages int) *probe {
	return &probe{
		search: s, limit: limit, stages: stages, level: make([]int32, s.f.len()), after: make([]int32, s.f.len()),
		next: math.Inf(1), nextMemory: math.Inf(1),
	}
}

// probe answers where time, transfers and memory count.
func (s *search) probe(ctx context.Context, limit float64, stages int) *probe {
	q := s.question(limit, stages)
	q.delta = make([]float64, len(s.w.order))
	front := []int32{0}
	for q.y = 1; q.y <= stages && len(front) > 0 && !q.reached(); q.y++ {
		q.look(q.y)
		var reached []int32
		for i, upper := range front {
			if i%8 == 0 && ctx.Err() != nil {
				q.stopped = true
				return q
			}
			reached = q.below(int(upper), reached)
		}
		front = reached
	}
	return q
}

func (q *probe) reached() bool { return q.level[q.f.empty] > 0 }

// look takes the view of the stage that is y-th from the end.
func (q *probe) look(y int) {
	if math.IsInf(q.capacity, 1) && y > 1 {
		return
	}
	q.view = q.search.view(y)
	q.fast = q.sums(func(v int) float64 { _, m := q.view.nodes[v].fastest(); return m })
	q.least = q.sums(func(v int) float64 { return q.view.nodes[v].least() })
}

// below reaches the sets that one stage takes the upper set to.
func (q *probe) below(upper int, reached []int32) []int32 {
	if q.y == q.stages { // the last stage has to take all that is left
		if q.allowed(upper, q.f.empty, q.sends[upper]) {
			reached = q.reach(upper, q.f.empty, reached)
		}
		return reached
	}
	q.cross(upper)
	q.walk++
	q.stack = append(q.stack[:0], int32(upper))
	q.transfers[upper] = 0
	left := float64(q.stages - q.y)
	for len(q.stack) > 0 {
		at := q.stack[len(q.stack)-1]
		q.stack = q.stack[:len(q.stack)-1]
		for _, b := range q.f.below[at] {
			if q.met[b.to] == q.walk {
				continue
			}
			q.met[b.to] = q.walk
			if !q.room(upper, int(b.to)) {
				continue
			}
			q.stack = append(q.stack, b.to)
			q.transfers[b.to] = q.transfers[at] + q.delta[b.node]
			if q.level[b.to] > 0 {
				continue
			}
			// The stages before have to run what is left, and to send from it.
			if rest := q.fastest[b.to] + q.sends[b.to]; rest > left*q.limit*(1+rounding) {
				q.next = min(q.next, rest/left)
				continue
			}
			if q.allowed(upper, int(b.to), q.transfers[b.to]) {
				reached = q.reach(upper, int(b.to), reached)
			}
		}
	}
	return reached
}

func (q *probe) reach(upper, lower int, reached []int32) []int32 {
	q.level[lower], q.after[lower] = int32(q.y), int32(upper)
	return append(reached, int32(lower))
}

// room is false where neither this stage nor a larger one can be: time and
// memory of the nodes alone are too much.
func (q *probe) room(upper, lower int) bool {
	if t := q.fastest[upper] - q.fastest[lower]; t > q.limit*(1+rounding) {
		q.next = min(q.next, t)
		return false
	}
	if m := q.least[upper] - q.least[lower]; m > q.capacity*(1+rounding) {
		q.nextMemory = min(q.nextMemory, m)
		return false
	}
	return true
}
