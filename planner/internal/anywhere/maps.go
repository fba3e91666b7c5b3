package anywhere

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// CountsOf is how many items of each class a map puts on each device.
func (s *Problem) CountsOf(m devicemap.Map) [][]int {
	counts := make([][]int, len(s.Devices))
	for d := range counts {
		counts[d] = make([]int, len(s.Kinds))
	}
	for c := range s.Kinds {
		for _, i := range s.Kinds[c].Items {
			counts[m[s.Items[i].Units[0]]][c]++
		}
	}
	return counts
}

// MapOf gives each item a device by the counts: the items of a class are cut
// into one run a device, which begin where the units before are and end where
// those after are, so that little crosses between devices.
func (s *Problem) MapOf(counts [][]int) devicemap.Map {
	m := make(devicemap.Map, len(s.ItemOf))
	for u := range m {
		m[u] = devicemap.Nowhere
	}
	for c := range s.Kinds {
		if len(s.Kinds[c].Items) == 1 {
			s.deal(m, c, counts)
		}
	}
	const passes = 3 // the later ones know what stands on both sides
	for range passes {
		for c := range s.Kinds {
			if len(s.Kinds[c].Items) > 1 {
				s.deal(m, c, counts)
			}
		}
	}
	s.placeWeightless(m)
	return m
}

// deal places the items of one class.
func (s *Problem) deal(m devicemap.Map, c int, counts [][]int) {
	items := s.Kinds[c].Items
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
func (s *Problem) beside(m devicemap.Map, i, step int) int {
	for u := s.Items[i].Units[0] + step; u >= 0 && u < len(m); u += step {
		if m[u] >= 0 {
			return int(m[u])
		}
	}
	return -1
}

// placeWeightless puts what holds nothing beside the unit that it reads from,
// so that it takes no device that is idle otherwise.
func (s *Problem) placeWeightless(m devicemap.Map) {
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

// Relabel numbers devices that are alike in the order in which the model
// reaches them.
func (s *Problem) Relabel(m devicemap.Map) {
	to := make([]devicemap.Device, len(s.Devices))
	for d := range to {
		to[d] = devicemap.Nowhere
	}
	next := make([]int, len(s.Devices)) // per kind of device, the next number to give
	for u := range m {
		d := m[u]
		if to[d] >= 0 {
			continue
		}
		like := s.Devices[d].Like
		for next[like] = max(next[like], like); s.Devices[next[like]].Like != like; next[like]++ {
			continue
		}
		to[d] = devicemap.Device(next[like])
		next[like]++
	}
	for u := range m {
		m[u] = to[m[u]]
	}
}

// KindOf is the class of each item, −1 where it holds nothing.
func (s *Problem) KindOf() []int {
	out := make([]int, len(s.Items))
	for i := range out {
		out[i] = -1
	}
	for c := range s.Kinds {
		for _, i := range s.Kinds[c].Items {
			out[i] = c
		}
	}
	return out
}
