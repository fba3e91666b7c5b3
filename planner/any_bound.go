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
		h := &s.bins[d]
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

// spare is what the devices can hold under caps beyond the moment's bytes;
// negative where they cannot hold those.
func (m *moment) spare(s *scatter, caps []int64) int64 {
	room, spare := m.rooms(s, caps)
	for _, r := range room {
		spare += r
	}
	return spare - m.total
}

// caps are more than the bytes that a share allows each device, by less than
// two.
func (s *scatter) caps(share float64) []int64 {
	caps := make([]int64, len(s.bins))
	for d := range caps {
		caps[d] = int64(share*float64(s.bins[d].budget)) + 1 // past the rounding
	}
	return caps
}

// mostMoments is how many moments a search asks at every node.
const mostMoments = 8

// tightest are the moments with least to spare at a share.
func (s *scatter) tightest(moments []moment, share float64) []moment {
	caps := s.caps(share)
	part := make([]float64, len(moments))
	order := make([]int, len(moments))
	for i := range moments {
		order[i], part[i] = i, float64(moments[i].spare(s, caps))/float64(moments[i].total+1)
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(part[i], part[j]) })
	out := make([]moment, 0, mostMoments)
	for _, i := range order[:min(len(order), mostMoments)] {
		out = append(out, moments[i])
	}
	return out
}

// average is the largest share that the moments prove no map to be below, and
// the name of the moment.
func (s *scatter) average(moments []moment) (share float64, at string) {
	holds := func(m *moment, t float64) bool { return m.spare(s, s.caps(t)) >= 0 }
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
