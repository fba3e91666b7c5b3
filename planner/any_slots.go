package planner

import "github.com/devmap-dev/devmap/costmodel/timeline"

// makeSlots finds the classes and their places in time.
func (s *scatter) makeSlots() {
	classOf := make([]int, len(s.items))
	for i := range classOf {
		classOf[i] = -1
	}
	last := -1 // the class of the slot before, where it can be joined
	for u := range s.itemOf {
		i := s.itemOf[u]
		run := timeline.Of(&s.p.Costs.Units[u])
		it := &s.items[i]
		if run == (timeline.Summary{}) && (len(it.units) > 1 || it.pin < 0) {
			if len(it.units) == 1 {
				s.weightless = append(s.weightless, i)
			}
			continue // it joins nothing to a device's run
		}
		single := len(it.units) == 1 && it.pin < 0
		if single && last >= 0 && s.slots[len(s.slots)-1].runs[1] == run {
			s.extend(last, i)
			continue
		}
		c := classOf[i]
		if c < 0 {
			c = len(s.classes)
			classOf[i] = c
			s.classes = append(s.classes, class{items: []int{i}, pin: it.pin})
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
func (s *scatter) extend(c, i int) {
	s.classes[c].items = append(s.classes[c].items, i)
	at := &s.slots[len(s.slots)-1]
	at.runs = append(at.runs, at.runs[len(at.runs)-1].Join(at.runs[1]))
}

// keepHollow gives items of several units that all hold nothing a place among
// the weightless; pinned ones stay where they are pinned.
func (s *scatter) keepHollow(classOf []int) {
	for i := range s.items {
		if classOf[i] < 0 && len(s.items[i].units) > 1 {
			s.weightless = append(s.weightless, i)
		}
	}
}
