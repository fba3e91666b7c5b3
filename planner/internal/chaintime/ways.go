package chaintime

import (
	"slices"
)

// way is the groups' devices, and the stops that go with them.
type way struct {
	groups []int
	stops  []stop
}

// newSearch lists the ways; nil where there are too many for this order.
func newSearch(t *fixedPoint, order bool) *search {
	s := &search{fixedPoint: t, order: order}
	if order {
		s.line = inOrder(t.devices)
	}
	s.list(nil) // which does not depend on who is waited for
	sums := 0
	for i := range s.ways {
		if s.ways[i].stops == nil {
			return nil
		}
		for _, stop := range s.ways[i].stops {
			sums += (2 + len(stop.before)) * t.items
		}
	}
	if sums > maxSums && !order {
		return nil
	}
	s.lowest = s.floor()
	return s
}

// waiting is the search with other sums.
func (s *search) waiting(t *fixedPoint) *search {
	out := *s
	out.fixedPoint, out.tried = t, 0
	out.lowest = out.floor()
	return &out
}

// list adds the ways that begin with the given devices. Of devices that are
// alike, the first that holds nothing yet stands for all.
func (s *search) list(groups []int) {
	if len(s.ways) >= maxGroups {
		s.rest = true
		return
	}
	g := len(groups)
	if g == len(s.peaks.Groups) {
		s.ways = append(s.ways, way{slices.Clone(groups), s.stopsOf(groups)})
		return
	}
	if at := s.peaks.GroupPins[g]; at >= 0 {
		s.list(append(groups, at))
		return
	}
	apart := s.apart(groups)
	if s.order {
		for d := range s.devices {
			s.list(append(groups, d))
		}
		return
	}
	for _, class := range s.In.Classes(apart) {
		s.list(append(groups, class[0]))
	}
}

// apart are the devices that pins and groups make different from others.
func (s *search) apart(groups []int) map[int]bool {
	out := map[int]bool{}
	for _, list := range [][]int{groups, s.peaks.GroupPins, s.peaks.Pins} {
		for _, d := range list {
			if d >= 0 {
				out[d] = true
			}
		}
	}
	return out
}

func (s *search) stopsOf(groups []int) []stop {
	if s.order {
		return s.line
	}
	return anyOrder(s.In.Classes(s.apart(groups)), maxStops)
}
