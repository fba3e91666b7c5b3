package planner

import (
	"cmp"
	"slices"
)

// moment is a time in a step, the same on every device, with what each item
// holds then at least: a device's peak is at least the sum over its items. The
// average over the devices of the best moment bounds every map.
//
// A device that holds a heavy unit also has that unit's transient at the
// moment (and the library's workspaces): its charge. What the heavy units
// promise, weight, leaves out what of the others is not sure to be there.
type moment struct {
	name   string
	weight []int64 // per class, of one item
	total  int64
	light  int64 // the part of total in items without a heavy unit
	// charge is a device's with a heavy unit, workspaces besides; charged:
	// there are heavy units.
	charge  int64
	charged bool
	output  bool // the model's outputs are there, on the input's device
}

// rooms is what each device can hold of the moment's bytes if it needs no more
// than caps, and what more there can be where devices hold light items only.
func (m *moment) rooms(s *scatter, caps []int64) (room []int64, gain int64) {
	room = make([]int64, len(caps))
	charges := make([]int64, len(caps))
	for d := range caps {
		h := &s.hosts[d]
		free := caps[d] - h.extra - h.kept.Buckets
		if m.output {
			free -= h.kept.Output
		}
		if m.charged {
			charges[d] = m.charge + h.kept.Workspace
			free -= charges[d]
		}
		room[d] = max(0, free)
	}
	if !m.charged {
		return room, 0
	}
	// A device with light items only has no charge. That gains something only
	// if its light items are more than its room with the charge, so the
	// devices that gain have less room, together, than there are light bytes.
	sorted := slices.Clone(room)
	slices.Sort(sorted)
	slices.SortFunc(charges, func(a, b int64) int { return cmp.Compare(b, a) })
	var sum int64
	for i, r := range sorted {
		if sum += r; sum >= m.light {
			break
		}
		gain += charges[i]
	}
	return room, min(gain, m.light)
}

// holds reports whether the devices can hold the moment under caps.
func (m *moment) holds(s *scatter, caps []int64) bool {
	room, gain := m.rooms(s, caps)
	for _, r := range room {
		gain += r
	}
	return gain >= m.total
}

// average is the largest share that the moments prove no map to be below, and
// the name of the moment.
func (s *scatter) average(moments []moment) (share float64, at string) {
	caps := make([]int64, len(s.hosts))
	holds := func(m *moment, t float64) bool {
		for d := range caps {
			caps[d] = int64(t*float64(s.hosts[d].budget)) + 1 // past the rounding
		}
		return m.holds(s, caps)
	}
	for i := range moments {
		m := &moments[i]
		if holds(m, share) {
			continue
		}
		lo, hi := share, max(share, 1)
		for !holds(m, hi) {
			lo, hi = hi, 2*hi
		}
		for range 60 {
			if mid := (lo + hi) / 2; holds(m, mid) {
				hi = mid
			} else {
				lo = mid
			}
		}
		share, at = lo, m.name
	}
	return share, at
}

// BoundValue is one argument for a lower bound of the largest share, and what
// it proves.
type BoundValue struct {
	Name  string
	Value float64
	// What says which unit or moment it rests on.
	What string
}

// bounds are all arguments, for --explain.
func (a *anySearch) bounds() []BoundValue {
	share, c := a.sc.largestItem()
	unit := BoundValue{Name: "largest unit", Value: share.Float(), What: "what the devices hold without units"}
	if c >= 0 {
		unit.What = a.sc.nameOf(c)
	}
	out := []BoundValue{unit, {Name: "average", Value: a.average, What: a.at}}
	if a.relaxed > 0 {
		out = append(out, BoundValue{"relaxed search", a.relaxed, "units that differ little counted as the least of them"})
	}
	switch {
	case a.proved:
		out = append(out, BoundValue{"search", a.value.Float(), "every smaller share was refuted"})
	case a.refuted > 0:
		out = append(out, BoundValue{"search", a.refuted, "the largest share that was refuted"})
	}
	return out
}
