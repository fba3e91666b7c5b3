package chain

import (
	"math"
	"slices"
)

// mostCuts keeps the windows, with what is known at each cut, under 400 MiB.
const mostCuts = 1 << 24

// windows are the cuts before and after every device that lie on a map within
// the caps, by Floor. None: there is no such map. False: they hold too many.
func (s *stages) windows() (ws []window, fits bool) {
	if ok, _ := s.probe(); !ok {
		return nil, true
	}
	near := s.nearest()
	total := 0
	for d := range near {
		hi := min(s.reach[d], s.maxCut[d])
		if d > 0 { // an item at least after the window before
			near[d] = max(near[d], near[d-1]+1)
		}
		if near[d] < 0 || near[d] > hi {
			return nil, true
		}
		s.reach[d] = hi
		total += hi - near[d] + 1
	}
	if total > mostCuts {
		return nil, false
	}
	for d, lo := range near {
		ws = append(ws, window{lo: lo, from: make([]int32, s.reach[d]-lo+1)})
	}
	return ws, true
}

// window is the cuts [lo, lo+len(from)) after a device, each with the best
// start of that device's run.
type window struct {
	lo   int
	from []int32
}

func (w window) hi() int { return w.lo + len(w.from) - 1 }

// cuts follows the best starts back from the end.
func (s *stages) cuts(ws []window) placement {
	m := placement{cuts: make([]int, s.k+1), groups: s.base}
	m.cuts[s.k] = s.Items
	for d := s.k; d > 0; d-- {
		m.cuts[d-1] = int(ws[d].from[m.cuts[d]-ws[d].lo])
	}
	return m
}

// walk is the dynamic program over the windows: for each device and each cut
// b after it, it calls row, which calls visit with the start of every run
// [a, b) within the cap, from the right. False where it was ended.
func (s *stages) walk(ws []window, best Share, row func(d, b int, runs func(visit func(a int, peak int64)))) bool {
	for d := range s.k {
		for b := ws[d+1].lo; b <= ws[d+1].hi(); b++ {
			row(d, b, func(visit func(a int, peak int64)) { s.runs(d, ws[d], b, visit) })
			if s.ended() {
				return false
			}
		}
		s.run.report(Progress{Best: best, Lower: best, Done: d + 1, Total: s.k})
	}
	return true
}

// runs visits the runs [a, b) of a device that begin in a window and are
// within the cap.
func (s *stages) runs(d int, w window, b int, visit func(a int, peak int64)) {
	for a := min(w.hi(), b-1); a >= w.lo; a-- {
		s.cells++
		peak := s.exact(d, a, b)
		if peak <= s.caps[d] {
			visit(a, peak)
		} else if s.Floor(d, a, b) > s.caps[d] {
			return
		}
	}
}

// ended looks at the limits once in a while.
func (s *stages) ended() bool {
	if s.cells < s.polls {
		return false
	}
	s.polls = s.cells + 1<<14
	if s.most > 0 {
		s.polls = min(s.polls, s.most+1)
	}
	return s.run.cancelled() || s.most > 0 && s.cells > s.most
}

// better looks for the best map below the incumbent. Where it ends by itself
// the incumbent is the least there is.
func (s *stages) better(inc *incumbent) {
	s.undercut(inc.value)
	ws, fits := s.windows()
	if ws == nil {
		if fits { // not even by Floor
			inc.lower = inc.value
		}
		return
	}
	none := Share{math.MaxInt64, 1}
	least := make([][]Share, s.k+1) // by cut: of the maps so far, the least largest share
	least[0] = []Share{{0, 1}}
	for d := 1; d <= s.k; d++ {
		least[d] = slices.Repeat([]Share{none}, len(ws[d].from))
	}
	done := s.walk(ws, inc.value, func(d, b int, runs func(func(int, int64))) {
		to := &least[d+1][b-ws[d+1].lo]
		runs(func(a int, peak int64) {
			before := least[d][a-ws[d].lo]
			if !before.less(*to) {
				return
			}
			if here := maxShare(before, Share{peak, s.Budgets[d]}); here.less(*to) {
				*to, ws[d+1].from[b-ws[d+1].lo] = here, int32(a)
			}
		})
	})
	if !done {
		return
	}
	if got := least[s.k][0]; got.less(inc.value) {
		inc.placement, inc.value = s.cuts(ws), got
	}
	inc.lower = inc.value
}

// evenOut is [task.even] for stages: of the maps within limit the one with the
// least sum of squared shares, ties broken alike. False where it was ended.
func (s *stages) evenOut(limit Share) (m placement, found bool) {
	s.limit(limit)
	ws, _ := s.windows()
	if ws == nil {
		return m, false
	}
	s.most, s.polls = s.cells+s.run.cells(), s.cells
	scale := newRuler(s.Budgets, limit)
	sums := make([][]uint64, s.k+1)
	sums[0] = []uint64{0}
	for d := 1; d <= s.k; d++ {
		sums[d] = slices.Repeat([]uint64{unreached}, len(ws[d].from))
	}
	done := s.walk(ws, limit, func(d, b int, runs func(func(int, int64))) {
		to := &sums[d+1][b-ws[d+1].lo]
		runs(func(a int, peak int64) {
			before := sums[d][a-ws[d].lo]
			if before == unreached {
				return
			}
			if here := before + scale.square(d, peak); here < *to {
				*to, ws[d+1].from[b-ws[d+1].lo] = here, int32(a)
			}
		})
	})
	if !done {
		return m, false
	}
	return s.cuts(ws), true
}
