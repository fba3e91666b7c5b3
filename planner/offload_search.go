package planner

import (
	"container/heap"
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/chain"
)

// Bounds of the search for what leaves: sets looked at, and sets for which
// the rest was placed.
const (
	mostLeavings = 200_000
	mostPlacings = 1500
)

// leaving is the search for the units that leave: sets in the order of what
// travels, until one leaves a rest that fits. Units with equal costs are a
// class; of a class, the first leave, next to the first device, which runs
// them, or the last.
type leaving struct {
	p       *Problem
	classes []leavingClass
	least   int64 // what stays holds at least, with nothing left
	budgets int64
}

// leavingClass are sets of units that leave together and are alike.
type leavingClass struct {
	sets  [][]int
	bytes int64 // travelling, of one
	frees int64 // what one takes off the devices
}

// left is a set of units that left, and the map of the rest.
type left struct {
	units []int
	sol   *Solution
}

func newLeaving(p *Problem) (*leaving, error) {
	sets, err := p.leavingSets()
	if err != nil {
		return nil, err
	}
	s := &leaving{p: p}
	type key struct {
		bytes, frees int64
		run          costmodel.Run
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
			k.run, k.alone = p.Costs.Units[set[0]].Run(), -1
		}
		c, ok := at[k]
		if !ok {
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
	var r costmodel.Run
	for u := range t.Units {
		r = r.Join(t.Units[u].Run())
	}
	r.Products = false // a workspace is on some devices, and not on others
	s.least = r.Static
	if t.Workload.Mode != costmodel.Load {
		s.least = r.Peak(costmodel.Kept{Output: t.OutputBytes})
	}
	for d := range s.p.Topology.Devices {
		dev := &s.p.Topology.Devices[d]
		s.budgets += max(0, dev.Budget()-t.Overhead(d, dev))
	}
}

// set is how many of each class have left; last is the class that was added
// to, so that every set is made once.
type leavingSet struct {
	counts []int
	last   int
	bytes  int64
	frees  int64
}

type leavingHeap []leavingSet

func (h leavingHeap) Len() int { return len(h) }

func (h leavingHeap) Less(a, b int) bool {
	if h[a].bytes != h[b].bytes {
		return h[a].bytes < h[b].bytes
	}
	return slices.Compare(h[a].counts, h[b].counts) < 0
}

func (h leavingHeap) Swap(a, b int) { h[a], h[b] = h[b], h[a] }

// Push implements heap.Interface.
func (h *leavingHeap) Push(x any) { *h = append(*h, x.(leavingSet)) } //nolint:errcheck,forcetypeassert // our own

// Pop implements heap.Interface.
func (h *leavingHeap) Pop() any {
	last := len(*h) - 1
	out := (*h)[last]
	*h = (*h)[:last]
	return out
}

// run is the first set, by bytes, whose rest fits; and the bytes that no set
// is below: the first that frees what the devices lack in sum.
func (s *leaving) run(ctx context.Context, limits Settings) (*left, int64) {
	h := &leavingHeap{{counts: make([]int, len(s.classes))}}
	bound, placed := int64(-1), 0
	for n := 0; h.Len() > 0; n++ {
		set := heap.Pop(h).(leavingSet) //nolint:errcheck,forcetypeassert // our own
		if s.least-set.frees <= s.budgets && set.frees > 0 {
			if bound < 0 {
				bound = set.bytes
			}
			placed++
			if got := s.try(ctx, set.counts, limits); got != nil {
				return got, bound
			}
		}
		if n > mostLeavings || placed > mostPlacings || ctx.Err() != nil {
			if bound < 0 {
				bound = max(set.bytes, s.floor())
			}
			return s.nearest(ctx, limits), bound
		}
		for c := set.last; c < len(s.classes); c++ {
			if set.counts[c] < len(s.classes[c].sets) {
				next := leavingSet{slices.Clone(set.counts), c, set.bytes + s.classes[c].bytes, set.frees + s.classes[c].frees}
				next.counts[c]++
				heap.Push(h, next)
			}
		}
	}
	return nil, max(0, bound)
}

// floor is a number of bytes that every set which frees enough has: what is
// lacking, at the least bytes for what they free.
func (s *leaving) floor() int64 {
	ratio := math.Inf(1)
	for c := range s.classes {
		ratio = min(ratio, float64(s.classes[c].bytes)/float64(s.classes[c].frees))
	}
	return int64(float64(s.least-s.budgets) * ratio * (1 - tolerance))
}

// try places what stays where these many of each class left.
func (s *leaving) try(ctx context.Context, counts []int, limits Settings) *left {
	front := s.units(counts, false)
	got := s.tryUnits(ctx, front, limits)
	if got == nil {
		if back := s.units(counts, true); !slices.Equal(front, back) {
			got = s.tryUnits(ctx, back, limits)
		}
	}
	return got
}

func (s *leaving) tryUnits(ctx context.Context, units []int, limits Settings) *left {
	q := s.p.without(units)
	if q.place(ctx, chain.Settings{Cells: 1, Probes: limits.Probes}) == nil {
		return nil
	}
	sol := q.place(ctx, chain.Settings{Probes: limits.Probes, Progress: limits.Progress})
	if sol == nil {
		return nil
	}
	return &left{units, sol}
}

// units are the first, or the last, of each class.
func (s *leaving) units(counts []int, last bool) []int {
	var out []int
	for c, n := range counts {
		sets := s.classes[c].sets[:n]
		if all := s.classes[c].sets; last {
			sets = all[len(all)-n:]
		}
		for _, set := range sets {
			out = append(out, set...)
		}
	}
	slices.Sort(out)
	return out
}

// most says what the devices lack where as much left as can.
func (s *leaving) most(ctx context.Context) string {
	if len(s.classes) == 0 {
		return "nothing may leave"
	}
	all := make([]int, len(s.classes))
	for c := range all {
		all[c] = len(s.classes[c].sets)
	}
	q := s.p.without(s.units(all, false))
	l, fixed, err := q.layout()
	if err != nil {
		return ""
	}
	sol, err := l.solve(ctx, fixed, chain.Settings{Cells: 1})
	if err != nil {
		return ""
	}
	w := &sol.Devices[sol.Bottleneck]
	need := w.Predicted.PeakAllocatedBytes + w.Predicted.OverheadBytes
	if need <= w.Budget() {
		return "with all that may leave on the host, no unit stays on device 0, which would run them"
	}
	return "with all that may leave on the host, " + costText(sol.Bottleneck, need, w.Budget())
}
