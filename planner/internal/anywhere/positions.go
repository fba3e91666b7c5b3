package anywhere

import (
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// findPositions finds the classes and their places in time.
func (s *Problem) findPositions() {
	classOf := make([]int, len(s.Items))
	for i := range classOf {
		classOf[i] = -1
	}
	last := -1 // the class of the slot before, where it can be joined
	for u := range s.ItemOf {
		i := s.ItemOf[u]
		run := timeline.Of(&s.In.Costs.Units[u])
		it := &s.Items[i]
		if run == (timeline.Summary{}) && (len(it.Units) > 1 || it.Device < 0) {
			if len(it.Units) == 1 {
				s.weightless = append(s.weightless, i)
			}
			continue // it joins nothing to a device's run
		}
		single := len(it.Units) == 1 && it.Device < 0
		if single && last >= 0 && s.Positions[len(s.Positions)-1].Held[1] == run {
			s.extend(last, i)
			continue
		}
		c := classOf[i]
		if c < 0 {
			c = len(s.Kinds)
			classOf[i] = c
			s.Kinds = append(s.Kinds, Kind{Items: []int{i}, Pin: it.Device})
		}
		s.Kinds[c].Positions = append(s.Kinds[c].Positions, len(s.Positions))
		s.Positions = append(s.Positions, Position{Kind: c, Held: []timeline.Summary{{}, run}})
		if last = -1; single {
			last = c
		}
	}
	s.keepHollow(classOf)
}

// extend adds an item to the class of the last slot.
func (s *Problem) extend(c, i int) {
	s.Kinds[c].Items = append(s.Kinds[c].Items, i)
	at := &s.Positions[len(s.Positions)-1]
	at.Held = append(at.Held, at.Held[len(at.Held)-1].Join(at.Held[1]))
}

// keepHollow gives items of several units that all hold nothing a place among
// the weightless; pinned ones stay where they are pinned.
func (s *Problem) keepHollow(classOf []int) {
	for i := range s.Items {
		if classOf[i] < 0 && len(s.Items[i].Units) > 1 {
			s.weightless = append(s.weightless, i)
		}
	}
}
