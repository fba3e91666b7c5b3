package anywhere

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Device is a device as the search sees it.
type Device struct {
	Budget, Overhead int64
	Kept             timeline.Resident
	Idle             int64 // what it needs without units
	Like             int   // the first device that is the same and, like it, has no pins; itself where none
}

func (s *Problem) readDevices() {
	p := s.In
	pinned := make(map[int]bool)
	for i := range s.Items {
		pinned[s.Items[i].Device] = true
	}
	for d := range p.Topology.Devices {
		dev := &p.Topology.Devices[d]
		h := Device{Budget: dev.Budget(), Overhead: p.Costs.Overhead(d, dev), Kept: timeline.ResidentOn(p.Costs, d, dev, false), Like: d}
		if h.Kept.Output > 0 { // it is there without units too
			h.Idle = timeline.Summary{}.Peak(timeline.ResidentOn(p.Costs, d, dev, true)) + h.Overhead
		}
		for e := range s.Devices {
			o := &s.Devices[e]
			if !pinned[d] && !pinned[e] && o.Budget == h.Budget && o.Overhead == h.Overhead && o.Kept == h.Kept && o.Idle == h.Idle {
				h.Like = e
				break
			}
		}
		s.Devices = append(s.Devices, h)
	}
}

// Load is what one device holds: how many of each class, and a segment tree
// of their runs in time order, so that a change costs O(log slots).
type Load struct {
	problem *Problem
	Device  int
	Counts  []int
	Items   int // sum of counts
	tree    []timeline.Summary
	leaves  int
}

func (s *Problem) NewLoad(d int) *Load {
	l := &Load{problem: s, Device: d, Counts: make([]int, len(s.Kinds)), leaves: 1}
	for l.leaves < len(s.Positions) {
		l.leaves *= 2
	}
	l.tree = make([]timeline.Summary, 2*l.leaves)
	return l
}

// Set makes the device hold n of a class.
func (l *Load) Set(c, n int) {
	if l.Counts[c] == n {
		return
	}
	l.Items += n - l.Counts[c]
	l.Counts[c] = n
	for _, at := range l.problem.Kinds[c].Positions {
		i := l.leaves + at
		l.tree[i] = l.problem.Positions[at].Held[n]
		for i /= 2; i > 0; i /= 2 {
			l.tree[i] = l.tree[2*i].Join(l.tree[2*i+1])
		}
	}
}

func (l *Load) Add(c, n int) { l.Set(c, l.Counts[c]+n) }

// Need is the device's peak and overhead, in bytes.
func (l *Load) Need() int64 {
	h := &l.problem.Devices[l.Device]
	if l.Items == 0 {
		return h.Idle
	}
	return l.tree[1].Peak(h.Kept) + h.Overhead
}

func (l *Load) Share() chain.Share {
	return chain.Share{Peak: l.Need(), Budget: l.problem.Devices[l.Device].Budget}
}

// Allows reports whether a class may be on the device.
func (l *Load) Allows(c int) bool {
	pin := l.problem.Kinds[c].Pin
	return pin < 0 || pin == l.Device
}

// LargestItem is the class that needs most by itself on the device that takes
// it best, with the share it has there; −1 where a device needs more without
// units.
func (s *Problem) LargestItem() (share chain.Share, c int) {
	share, c = chain.Share{Peak: 0, Budget: 1}, -1
	best := make([]chain.Share, len(s.Kinds))
	for d := range s.Devices {
		share = chain.MaxShare(share, chain.Share{Peak: s.Devices[d].Idle, Budget: s.Devices[d].Budget})
		if s.Devices[d].Like != d {
			continue
		}
		l := s.NewLoad(d)
		for i := range s.Kinds {
			if !l.Allows(i) {
				continue
			}
			l.Set(i, 1)
			if got := l.Share(); best[i].Budget == 0 || got.Cmp(best[i]) < 0 {
				best[i] = got
			}
			l.Set(i, 0)
		}
	}
	for i := range best {
		if best[i].Cmp(share) > 0 {
			share, c = best[i], i
		}
	}
	return share, c
}

// BySize lists the classes, those that need most by themselves first.
func (s *Problem) BySize() []int {
	need := make([]int64, len(s.Kinds))
	order := make([]int, len(need))
	for c := range need {
		order[c] = c
		l := s.NewLoad(max(0, s.Kinds[c].Pin))
		l.Set(c, 1)
		need[c] = l.Need()
	}
	slices.SortStableFunc(order, func(x, y int) int {
		switch {
		case need[x] > need[y]:
			return -1
		case need[x] < need[y]:
			return 1
		}
		return x - y
	})
	return order
}
