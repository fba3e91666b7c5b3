package offload

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// class are sets of units that leave together and are alike.
type class struct {
	sets  [][]int
	bytes int64 // travelling, of one
	frees int64 // what one takes off the devices
}

// newSearch finds what may leave: a pinned unit stays, with all that share its
// device.
func newSearch(in *instance.Instance) (*search, error) {
	sets, err := in.Sets()
	if err != nil {
		return nil, err
	}
	s := &search{in: in}
	type key struct {
		bytes, frees int64
		run          timeline.Summary
		alone        int
	}
	at := map[key]int{}
	for i := range sets {
		if sets[i].Device >= 0 {
			continue
		}
		set, k := sets[i].Units, key{alone: i}
		for _, u := range set {
			unit := &in.Costs.Units[u]
			k.bytes += unit.OffloadBytes
			k.frees += unit.Params + unit.Padding
		}
		if k.frees == 0 {
			continue
		}
		if len(set) == 1 {
			k.run, k.alone = timeline.Of(&in.Costs.Units[set[0]]), -1
		}
		c, ok := at[k]
		if !ok || len(s.classes[c].sets) == math.MaxUint16 { // what a count holds
			c = len(s.classes)
			at[k] = c
			s.classes = append(s.classes, class{bytes: k.bytes, frees: k.frees})
		}
		s.classes[c].sets = append(s.classes[c].sets, set)
	}
	slices.SortStableFunc(s.classes, func(a, b class) int { return int(min(1, max(-1, a.bytes-b.bytes))) })
	s.needs()
	return s, nil
}

// needs is what all devices hold together at the worst moment of a forward,
// as if one device ran it all: at that moment their peaks add up to no less.
// Each device that is used has its context besides.
func (s *search) needs() {
	t := s.in.Costs
	var r timeline.Summary
	for u := range t.Units {
		r = r.Join(timeline.Of(&t.Units[u]))
	}
	r.Products = false // a workspace is on some devices, and not on others
	s.least = r.Static
	if t.Workload.Mode != costmodel.Load {
		s.least = r.Peak(timeline.Resident{Output: t.OutputBytes})
	}
	for d := range s.in.Topology.Devices {
		dev := &s.in.Topology.Devices[d]
		s.budgets += max(0, dev.Budget()-t.Overhead(d, dev))
	}
}

// short reports that what is held is more than the devices can hold together,
// whatever leaves: nothing fits, and that is proved.
func (s *search) short() bool { return s.stays() > s.budgets }

// stays is what all devices hold together at least, whatever leaves.
func (s *search) stays() int64 {
	least := s.least
	for c := range s.classes {
		least -= int64(len(s.classes[c].sets)) * s.classes[c].frees
	}
	return max(0, least)
}

// average is a largest share that no map is below, whatever leaves.
func (s *search) average() float64 {
	var budgets int64
	for d := range s.in.Topology.Devices {
		budgets += s.in.Topology.Devices[d].Budget()
	}
	return float64(s.stays()) / float64(budgets)
}
