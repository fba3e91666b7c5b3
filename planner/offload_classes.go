package planner

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// leavingClass are sets of units that leave together and are alike.
type leavingClass struct {
	sets  [][]int
	bytes int64 // travelling, of one
	frees int64 // what one takes off the devices
}

func newLeaving(p *Problem) (*leaving, error) {
	sets, err := p.leavingSets()
	if err != nil {
		return nil, err
	}
	s := &leaving{p: p}
	type key struct {
		bytes, frees int64
		run          timeline.Summary
		alone        int
	}
	at := map[key]int{}
	for i, set := range sets {
		k := key{alone: i}
		for _, u := range set {
			unit := &p.Costs.Units[u]
			k.bytes += unit.Travels
			k.frees += unit.Params + unit.Padding
		}
		if k.frees == 0 {
			continue
		}
		if len(set) == 1 {
			k.run, k.alone = timeline.Of(&p.Costs.Units[set[0]]), -1
		}
		c, ok := at[k]
		if !ok || len(s.classes[c].sets) == math.MaxUint16 { // what a count holds
			c = len(s.classes)
			at[k] = c
			s.classes = append(s.classes, leavingClass{bytes: k.bytes, frees: k.frees})
		}
		s.classes[c].sets = append(s.classes[c].sets, set)
	}
	slices.SortStableFunc(s.classes, func(a, b leavingClass) int { return int(min(1, max(-1, a.bytes-b.bytes))) })
	s.needs()
	return s, nil
}

// leavingSets joins the units that ties and together-groups keep on one
// device; a pinned unit's set stays.
func (p *Problem) leavingSets() ([][]int, error) {
	joined, err := p.together()
	if err != nil {
		return nil, err
	}
	of := make([]int, len(p.Costs.Units))
	for u := range of {
		of[u] = u
	}
	for _, set := range append(joined, p.Graph.TiedUnits()...) {
		for _, u := range set {
			from, to := of[u], of[set[0]]
			for v := range of {
				if of[v] == from {
					of[v] = to
				}
			}
		}
	}
	stays := map[int]bool{}
	for _, pin := range p.Pins {
		units, err := match(p.Graph, "pin", pin.Pattern)
		if err != nil {
			return nil, err
		}
		for _, u := range units {
			stays[of[u]] = true
		}
	}
	var out [][]int
	index := map[int]int{}
	for u, root := range of {
		if stays[root] {
			continue
		}
		if _, ok := index[root]; !ok {
			index[root] = len(out)
			out = append(out, nil)
		}
		out[index[root]] = append(out[index[root]], u)
	}
	return out, nil
}

// needs is what all devices hold together at the worst moment of a forward,
// as if one device ran it all: at that moment their peaks add up to no less.
// Each device that is used has its context besides.
func (s *leaving) needs() {
	t := s.p.Costs
	var r timeline.Summary
	for u := range t.Units {
		r = r.Join(timeline.Of(&t.Units[u]))
	}
	r.Products = false // a workspace is on some devices, and not on others
	s.least = r.Static
	if t.Workload.Mode != costmodel.Load {
		s.least = r.Peak(timeline.Resident{Output: t.OutputBytes})
	}
	for d := range s.p.Topology.Devices {
		dev := &s.p.Topology.Devices[d]
		s.budgets += max(0, dev.Budget()-t.Overhead(d, dev))
	}
}

// short reports that what is held is more than the devices can hold together,
// whatever leaves: nothing fits, and that is proved.
func (s *leaving) short() bool { return s.stays() > s.budgets }

// stays is what all devices hold together at least, whatever leaves.
func (s *leaving) stays() int64 {
	least := s.least
	for c := range s.classes {
		least -= int64(len(s.classes[c].sets)) * s.classes[c].frees
	}
	return max(0, least)
}

// average is a largest share that no map is below, whatever leaves.
func (s *leaving) average() float64 {
	var budgets int64
	for d := range s.p.Topology.Devices {
		budgets += s.p.Topology.Devices[d].Budget()
	}
	return float64(s.stays()) / float64(budgets)
}
