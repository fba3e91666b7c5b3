package anymemory

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// countsOf is how many items of each class a map puts on each device.
func (s *Scatter) countsOf(m devicemap.Map) [][]int {
	counts := make([][]int, len(s.Bins))
	for d := range counts {
		counts[d] = make([]int, len(s.classes))
	}
	for c := range s.classes {
		for _, i := range s.classes[c].items {
			counts[m[s.Items[i].Units[0]]][c]++
		}
	}
	return counts
}

// mapOf gives each item a device by the counts: the items of a class are cut
// into one run a device, which begin where the units before are and end where
// those after are, so that little crosses between devices.
func (s *Scatter) mapOf(counts [][]int) devicemap.Map {
	m := make(devicemap.Map, len(s.ItemOf))
	for u := range m {
		m[u] = devicemap.Nowhere
	}
	for c := range s.classes {
		if len(s.classes[c].items) == 1 {
			s.deal(m, c, counts)
		}
	}
	const passes = 3 // the later ones know what stands on both sides
	for range passes {
		for c := range s.classes {
			if len(s.classes[c].items) > 1 {
				s.deal(m, c, counts)
			}
		}
	}
	s.placeWeightless(m)
	return m
}

// deal places the items of one class.
func (s *Scatter) deal(m devicemap.Map, c int, counts [][]int) {
	items := s.classes[c].items
	var on []int
	for d := range counts {
		if counts[d][c] > 0 {
			on = append(on, d)
		}
	}
	first, last := s.beside(m, items[0], -1), s.beside(m, items[len(items)-1], +1)
	rank := func(d int) int {
		switch d {
		case first:
			return 0
		case last:
			return 2
		default:
			return 1
		}
	}
	slices.SortStableFunc(on, func(a, b int) int { return rank(a) - rank(b) })
	at := 0
	for _, d := range on {
		for range counts[d][c] {
			for _, u := range s.Items[items[at]].Units {
				m[u] = devicemap.Device(d)
			}
			at++
		}
	}
}

// beside is the device of the nearest unit before (step −1) or after (+1) an
// item's that has one, -1 where none has.
func (s *Scatter) beside(m devicemap.Map, i, step int) int {
	for u := s.Items[i].Units[0] + step; u >= 0 && u < len(m); u += step {
		if m[u] >= 0 {
			return int(m[u])
		}
	}
	return -1
}

// placeWeightless puts what holds nothing beside the unit that it reads from,
// so that it takes no device that is idle otherwise.
func (s *Scatter) placeWeightless(m devicemap.Map) {
	for _, i := range s.weightless {
		d := max(s.beside(m, i, -1), 0)
		if b := s.beside(m, i, -1); b < 0 {
			d = max(s.beside(m, i, +1), 0)
		}
		for _, u := range s.Items[i].Units {
			m[u] = devicemap.Device(d)
		}
	}
}

// relabel numbers devices that are alike in the order in which the model
// reaches them.
func (s *Scatter) relabel(m devicemap.Map) {
	to := make([]devicemap.Device, len(s.Bins))
	for d := range to {
		to[d] = devicemap.Nowhere
	}
	next := make([]int, len(s.Bins)) // per kind of device, the next number to give
	for u := range m {
		d := m[u]
		if to[d] >= 0 {
			continue
		}
		like := s.Bins[d].Like
		for next[like] = max(next[like], like); s.Bins[next[like]].Like != like; next[like]++ {
			continue
		}
		to[d] = devicemap.Device(next[like])
		next[like]++
	}
	for u := range m {
		m[u] = to[m[u]]
	}
}

// better reports that a map comes before another: a smaller largest share,
// then a smaller sum of squared shares, then fewer bytes sent.
func (a *anySearch) better(m, than devicemap.Map) bool {
	if a.best == nil {
		return false
	}
	a.load(a.sc.countsOf(m))
	value, squares := a.score()
	a.load(a.sc.countsOf(than))
	other, others := a.score()
	if by := value.Cmp(other); by != 0 {
		return by < 0
	}
	switch {
	case squares < others*(1-instance.Tolerance):
		return true
	case squares > others*(1+instance.Tolerance):
		return false
	}
	return a.sc.In.Sent(m) < a.sc.In.Sent(than)
}
