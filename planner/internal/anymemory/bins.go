package anymemory

import (
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Bin is a device as the search sees it.
type Bin struct {
	Budget, Overhead int64
	Kept             timeline.Resident
	Idle             int64 // what it needs without units
	Like             int   // the first device that is the same and, like it, has no pins; itself where none
}

func (s *Scatter) makeBins() {
	p := s.In
	pinned := make(map[int]bool)
	for i := range s.Items {
		pinned[s.Items[i].Device] = true
	}
	for d := range p.Topology.Devices {
		dev := &p.Topology.Devices[d]
		h := Bin{Budget: dev.Budget(), Overhead: p.Costs.Overhead(d, dev), Kept: timeline.ResidentOn(p.Costs, d, dev, false), Like: d}
		if h.Kept.Output > 0 { // it is there without units too
			h.Idle = timeline.Summary{}.Peak(timeline.ResidentOn(p.Costs, d, dev, true)) + h.Overhead
		}
		for e := range s.Bins {
			o := &s.Bins[e]
			if !pinned[d] && !pinned[e] && o.Budget == h.Budget && o.Overhead == h.Overhead && o.Kept == h.Kept && o.Idle == h.Idle {
				h.Like = e
				break
			}
		}
		s.Bins = append(s.Bins, h)
	}
}

// load is what one device holds: how many of each class, and a segment tree
// of their runs in time order, so that a change costs O(log slots).
type load struct {
	s      *Scatter
	device int
	counts []int
	items  int // sum of counts
	tree   []timeline.Summary
	leaves int
}

func (s *Scatter) newLoad(d int) *load {
	l := &load{s: s, device: d, counts: make([]int, len(s.classes)), leaves: 1}
	for l.leaves < len(s.slots) {
		l.leaves *= 2
	}
	l.tree = make([]timeline.Summary, 2*l.leaves)
	return l
}

// set makes the device hold n of a class.
func (l *load) set(c, n int) {
	if l.counts[c] == n {
		return
	}
	l.items += n - l.counts[c]
	l.counts[c] = n
	for _, at := range l.s.classes[c].slots {
		i := l.leaves + at
		l.tree[i] = l.s.slots[at].runs[n]
		for i /= 2; i > 0; i /= 2 {
			l.tree[i] = l.tree[2*i].Join(l.tree[2*i+1])
		}
	}
}

func (l *load) add(c, n int) { l.set(c, l.counts[c]+n) }

// need is the device's peak and overhead, in bytes.
func (l *load) need() int64 {
	h := &l.s.Bins[l.device]
	if l.items == 0 {
		return h.Idle
	}
	return l.tree[1].Peak(h.Kept) + h.Overhead
}

func (l *load) share() chain.Share {
	return chain.Share{Peak: l.need(), Budget: l.s.Bins[l.device].Budget}
}

// allows reports whether a class may be on the device.
func (l *load) allows(c int) bool {
	pin := l.s.classes[c].pin
	return pin < 0 || pin == l.device
}

// largestItem is the class that needs most by itself on the device that takes
// it best, with the share it has there; −1 where a device needs more without
// units.
func (s *Scatter) largestItem() (share chain.Share, c int) {
	share, c = chain.Share{Peak: 0, Budget: 1}, -1
	best := make([]chain.Share, len(s.classes))
	for d := range s.Bins {
		share = larger(share, chain.Share{Peak: s.Bins[d].Idle, Budget: s.Bins[d].Budget})
		if s.Bins[d].Like != d {
			continue
		}
		l := s.newLoad(d)
		for i := range s.classes {
			if !l.allows(i) {
				continue
			}
			l.set(i, 1)
			if got := l.share(); best[i].Budget == 0 || got.Cmp(best[i]) < 0 {
				best[i] = got
			}
			l.set(i, 0)
		}
	}
	for i := range best {
		if best[i].Cmp(share) > 0 {
			share, c = best[i], i
		}
	}
	return share, c
}

// below is the most bytes of a budget that are a smaller share than v.
func below(v chain.Share, budget int64) int64 {
	if v.Peak <= 0 {
		return -1
	}
	q := int64(v.Float() * float64(budget))
	for (chain.Share{Peak: q, Budget: budget}).Cmp(v) >= 0 {
		q--
	}
	for (chain.Share{Peak: q + 1, Budget: budget}).Cmp(v) < 0 {
		q++
	}
	return q
}
