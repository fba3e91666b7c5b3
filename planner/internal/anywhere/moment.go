package anywhere

import (
	"cmp"
	"slices"
)

// Moment is a time in a step, the same on every device, with what each item
// holds then at least: a device's peak is at least the sum over its items. The
// average over the devices of the best moment bounds every map.
//
// A device that holds a heavy unit also has that unit's transient at the
// moment (and the library's workspaces): its charge. What the heavy units
// promise, weight, leaves out what of the others is not sure to be there.
type Moment struct {
	Name   string
	Weight []int64 // per class, of one item
	Total  int64
	light  int64 // the part of total in items without a heavy unit
	// charge is a device's with a heavy unit, workspaces besides; charged:
	// there are heavy units.
	charge  int64
	charged bool
	output  bool // the model's outputs are there, on the input's device
}

// Headroom is what each device can hold of the moment's bytes if it needs no more
// than caps, and what more there can be where devices hold light items only.
func (m *Moment) Headroom(s *Problem, caps []int64) (room []int64, gain int64) {
	room = make([]int64, len(caps))
	charges := make([]int64, len(caps))
	for d := range caps {
		h := &s.Devices[d]
		free := caps[d] - h.Overhead - h.Kept.Buckets
		if m.output {
			free -= h.Kept.Output
		}
		if m.charged {
			charges[d] = m.charge + h.Kept.Workspace
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

// Spare is what the devices can hold under caps beyond the moment's bytes;
// negative where they cannot hold those.
func (m *Moment) Spare(s *Problem, caps []int64) int64 {
	room, spare := m.Headroom(s, caps)
	for _, r := range room {
		spare += r
	}
	return spare - m.Total
}

// Caps are more than the bytes that a share allows each device, by less than
// two.
func (s *Problem) Caps(share float64) []int64 {
	caps := make([]int64, len(s.Devices))
	for d := range caps {
		caps[d] = int64(share*float64(s.Devices[d].Budget)) + 1 // past the rounding
	}
	return caps
}

// maxMoments is how many moments a search asks at every node.
const maxMoments = 8

// Tightest are the moments with least to spare at a share.
func (s *Problem) Tightest(moments []Moment, share float64) []Moment {
	caps := s.Caps(share)
	part := make([]float64, len(moments))
	order := make([]int, len(moments))
	for i := range moments {
		order[i], part[i] = i, float64(moments[i].Spare(s, caps))/float64(moments[i].Total+1)
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(part[i], part[j]) })
	out := make([]Moment, 0, maxMoments)
	for _, i := range order[:min(len(order), maxMoments)] {
		out = append(out, moments[i])
	}
	return out
}

// Average is the largest share that the moments prove no map to be below, and
// the name of the moment.
func (s *Problem) Average(moments []Moment) (share float64, at string) {
	holds := func(m *Moment, t float64) bool { return m.Spare(s, s.Caps(t)) >= 0 }
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
		share, at = lo, m.Name
	}
	return share, at
}
