package anymemory

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// alikeWithin is how far the bytes of units may be apart that the relaxation
// takes for one kind.
const alikeWithin = 0.1

// relaxed is the problem in which neighbours in time that differ little are
// all counted as the least of them in every figure (layers with and without a
// sliding window, in turn). No device needs more than before, so that a bound
// of it is one of the problem; it has few classes, and an exact search soon
// ends. Nil where no units are alike.
func (s *Scatter) relaxed() *Scatter {
	r := &Scatter{In: s.In, Items: s.Items, ItemOf: s.ItemOf, Bins: s.Bins}
	classOf := make([]int, len(s.classes))
	for c := range classOf {
		classOf[c] = -1
	}
	for at := 0; at < len(s.slots); {
		end := at + 1
		if s.loose(at) {
			for end < len(s.slots) && s.loose(end) && s.near(at, end) {
				end++
			}
		}
		s.join(r, at, end, classOf)
		at = end
	}
	if len(r.classes) == len(s.classes) {
		return nil
	}
	return r
}

// loose reports that a slot's units are items by themselves and not pinned.
func (s *Scatter) loose(at int) bool {
	c := &s.classes[s.slots[at].class]
	return c.pin < 0 && len(c.slots) == 1 && len(s.Items[c.items[0]].Units) == 1
}

// near reports that the slots from first up to at hold about the same bytes.
func (s *Scatter) near(first, at int) bool {
	least, most := s.slots[at].runs[1].Static, s.slots[at].runs[1].Static
	for i := first; i < at; i++ {
		b := s.slots[i].runs[1].Static
		least, most = min(least, b), max(most, b)
	}
	return float64(most-least) <= alikeWithin*float64(most)
}

// join adds the slots [at, end) to the relaxed problem r as one.
func (s *Scatter) join(r *Scatter, at, end int, classOf []int) {
	old := s.slots[at].class
	c := classOf[old]
	if c < 0 {
		c = len(r.classes)
		classOf[old] = c
		r.classes = append(r.classes, class{items: slices.Clone(s.classes[old].items), pin: s.classes[old].pin})
	}
	run := s.slots[at].runs[1]
	for i := at + 1; i < end; i++ {
		run = least(run, s.slots[i].runs[1])
		r.classes[c].items = append(r.classes[c].items, s.classes[s.slots[i].class].items...)
	}
	runs := []timeline.Summary{{}}
	for range r.classes[c].items {
		runs = append(runs, runs[len(runs)-1].Join(run))
	}
	r.classes[c].slots = append(r.classes[c].slots, len(r.slots))
	r.slots = append(r.slots, slot{class: c, runs: runs})
}

// least is the run that is at most both in every figure.
func least(a, b timeline.Summary) timeline.Summary {
	return timeline.Summary{
		Static: min(a.Static, b.Static), Saved: min(a.Saved, b.Saved), Grads: min(a.Grads, b.Grads),
		Forward: min(a.Forward, b.Forward), Backward: min(a.Backward, b.Backward), LastBackward: min(a.LastBackward, b.LastBackward),
		StepTransient: min(a.StepTransient, b.StepTransient), UntilBodyEnd: min(a.UntilBodyEnd, b.UntilBodyEnd),
		CacheGrowth: min(a.CacheGrowth, b.CacheGrowth), HeadPeak: min(a.HeadPeak, b.HeadPeak), Products: a.Products && b.Products,
	}
}

// relax solves the relaxed problem for its bound.
func (a *anySearch) relax() {
	r := a.sc.relaxed()
	if r == nil {
		return
	}
	b := newAnySearch(a.ctx, r, instance.Limits{})
	b.rounds = 2
	b.run()
	a.relaxed = b.lower()
	if b.proved {
		a.relaxed = max(a.relaxed, b.value.Float())
	}
}
