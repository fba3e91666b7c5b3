package anymemory

import (
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// makeSlots finds the classes and their places in time.
func (s *Scatter) makeSlots() {
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
		if single && last >= 0 && s.slots[len(s.slots)-1].runs[1] == run {
			s.extend(last, i)
			continue
		}
		c := classOf[i]
		if c < 0 {
			c = len(s.classes)
			classOf[i] = c
			s.classes = append(s.classes, class{items: []int{i}, pin: it.Device})
		}
		s.classes[c].slots = append(s.classes[c].slots, len(s.slots))
		s.slots = append(s.slots, slot{class: c, runs: []timeline.Summary{{}, run}})
		if last = -1; single {
			last = c
		}
	}
	s.keepHollow(classOf)
}

// extend adds an item to the class of the last slot.
func (s *Scatter) extend(c, i int) {
	s.classes[c].items = append(s.classes[c].items, i)
	at := &s.slots[len(s.slots)-1]
	at.runs = append(at.runs, at.runs[len(at.runs)-1].Join(at.runs[1]))
}

// keepHollow gives items of several units that all hold nothing a place among
// the weightless; pinned ones stay where they are pinned.
func (s *Scatter) keepHollow(classOf []int) {
	for i := range s.Items {
		if classOf[i] < 0 && len(s.Items[i].Units) > 1 {
			s.weightless = append(s.weightless, i)
		}
	}
}
