package anywhere

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// alikeWithin is how far the bytes of units may be apart that the relaxation
// takes for one kind.
const alikeWithin = 0.1

// Relaxed is the problem in which neighbours in time that differ little are
// all counted as the least of them in every figure (layers with and without a
// sliding window, in turn). No device needs more than before, so that a bound
// of it is one of the problem; it has few classes, and an exact search soon
// ends. Nil where no units are alike.
func (s *Problem) Relaxed() *Problem {
	r := &Problem{In: s.In, Items: s.Items, ItemOf: s.ItemOf, Devices: s.Devices}
	classOf := make([]int, len(s.Kinds))
	for c := range classOf {
		classOf[c] = -1
	}
	for at := 0; at < len(s.Positions); {
		end := at + 1
		if s.loose(at) {
			for end < len(s.Positions) && s.loose(end) && s.near(at, end) {
				end++
			}
		}
		s.join(r, at, end, classOf)
		at = end
	}
	if len(r.Kinds) == len(s.Kinds) {
		return nil
	}
	return r
}

// loose reports that a slot's units are items by themselves and not pinned.
func (s *Problem) loose(at int) bool {
	c := &s.Kinds[s.Positions[at].Kind]
	return c.Pin < 0 && len(c.Positions) == 1 && len(s.Items[c.Items[0]].Units) == 1
}

// near reports that the slots from first up to at hold about the same bytes.
func (s *Problem) near(first, at int) bool {
	least, most := s.Positions[at].Held[1].Static, s.Positions[at].Held[1].Static
	for i := first; i < at; i++ {
		b := s.Positions[i].Held[1].Static
		least, most = min(least, b), max(most, b)
	}
	return float64(most-least) <= alikeWithin*float64(most)
}

// join adds the slots [at, end) to the relaxed problem r as one.
func (s *Problem) join(r *Problem, at, end int, classOf []int) {
	old := s.Positions[at].Kind
	c := classOf[old]
	if c < 0 {
		c = len(r.Kinds)
		classOf[old] = c
		r.Kinds = append(r.Kinds, Kind{Items: slices.Clone(s.Kinds[old].Items), Pin: s.Kinds[old].Pin})
	}
	run := s.Positions[at].Held[1]
	for i := at + 1; i < end; i++ {
		run = run.Least(s.Positions[i].Held[1])
		r.Kinds[c].Items = append(r.Kinds[c].Items, s.Kinds[s.Positions[i].Kind].Items...)
	}
	runs := []timeline.Summary{{}}
	for range r.Kinds[c].Items {
		runs = append(runs, runs[len(runs)-1].Join(run))
	}
	r.Kinds[c].Positions = append(r.Kinds[c].Positions, len(r.Positions))
	r.Positions = append(r.Positions, Position{Kind: c, Held: runs})
}
