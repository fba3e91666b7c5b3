package chain

import (
	"math"
	"slices"
)

// maxCuts keeps the windows, with what is known at each cut, under 400 MiB.
const maxCuts = 1 << 24

// windows are the cuts before and after every device that lie on a map within
// the caps, by Floor. None: there is no such map. False: they hold too many.
func (search *stages) windows() (ws []window, fits bool) {
	if ok, _ := search.probe(); !ok {
		return nil, true
	}
	near := search.nearest()
	total := 0
	for device := range near {
		hi := min(search.reach[device], search.maxCut[device])
		if device > 0 { // an item at least after the window before
			near[device] = max(near[device], near[device-1]+1)
		}
		if near[device] < 0 || near[device] > hi {
			return nil, true
		}
		search.reach[device] = hi
		total += hi - near[device] + 1
	}
	if total > maxCuts {
		return nil, false
	}
	for device, lo := range near {
		ws = append(ws, window{lo: lo, from: make([]int32, search.reach[device]-lo+1)})
	}
	return ws, true
}

// window is the cuts [lo, lo+len(from)) after a device, each with the best
// start of that device's run.
type window struct {
	lo   int
	from []int32
}

func (cuts window) hi() int { return cuts.lo + len(cuts.from) - 1 }

// cuts follows the best starts back from the end.
func (search *stages) cuts(ws []window) placement {
	placed := placement{cuts: make([]int, search.k+1), groups: search.base}
	placed.cuts[search.k] = search.Items
	for device := search.k; device > 0; device-- {
		placed.cuts[device-1] = int(ws[device].from[placed.cuts[device]-ws[device].lo])
	}
	return placed
}

// walk is the dynamic program over the windows: for each device and each cut
// b after it, it calls row, which calls visit with the start of every run
// [a, b) within the cap, from the right. False where it was ended.
func (search *stages) walk(ws []window, best Share, row func(device, b int, runs func(visit func(a int, peak int64)))) bool {
	for device := range search.k {
		for b := ws[device+1].lo; b <= ws[device+1].hi(); b++ {
			row(device, b, func(visit func(a int, peak int64)) { search.runs(device, ws[device], b, visit) })
			if search.ended() {
				return false
			}
		}
		search.run.report(Progress{Best: best, Lower: best, Done: device + 1, Total: search.k})
	}
	return true
}

// runs visits the runs [a, b) of a device that begin in a window and are
// within the cap.
func (search *stages) runs(device int, cuts window, b int, visit func(a int, peak int64)) {
	for a := min(cuts.hi(), b-1); a >= cuts.lo; a-- {
		search.cells++
		peak := search.exact(device, a, b)
		if peak <= search.caps[device] {
			visit(a, peak)
		} else if search.Floor(device, a, b) > search.caps[device] {
			return
		}
	}
}

// ended looks at the limits once in a while.
func (search *stages) ended() bool {
	if search.cells < search.polls {
		return false
	}
	search.polls = search.cells + 1<<14
	if search.most > 0 {
		search.polls = min(search.polls, search.most+1)
	}
	return search.run.cancelled() || search.most > 0 && search.cells > search.most
}

// better looks for the best map below the incumbent. Where it ends by itself
// the incumbent is the least there is.
func (search *stages) better(inc *incumbent) {
	search.undercut(inc.value)
	ws, fits := search.windows()
	if ws == nil {
		if fits { // not even by Floor
			inc.lower = inc.value
		}
		return
	}
	none := Share{math.MaxInt64, 1}
	least := make([][]Share, search.k+1) // by cut: of the maps so far, the least largest share
	least[0] = []Share{{0, 1}}
	for device := 1; device <= search.k; device++ {
		least[device] = slices.Repeat([]Share{none}, len(ws[device].from))
	}
	done := search.walk(ws, inc.value, func(device, b int, runs func(func(int, int64))) {
		to := &least[device+1][b-ws[device+1].lo]
		runs(func(a int, peak int64) {
			before := least[device][a-ws[device].lo]
			if !before.less(*to) {
				return
			}
			if here := MaxShare(before, Share{peak, search.Budgets[device]}); here.less(*to) {
				*to, ws[device+1].from[b-ws[device+1].lo] = here, int32(a)
			}
		})
	})
	if !done {
		return
	}
	if got := least[search.k][0]; got.less(inc.value) {
		inc.placement, inc.value = search.cuts(ws), got
	}
	inc.lower = inc.value
}

// evenOut is [task.even] for stages: of the maps within limit the one with the
// least sum of squared shares, ties broken alike. False where it was ended.
func (search *stages) evenOut(limit Share) (placed placement, found bool) {
	search.limit(limit)
	ws, _ := search.windows()
	if ws == nil {
		return placed, false
	}
	search.most, search.polls = search.cells+search.run.cells(), search.cells
	scale := newRuler(search.Budgets, limit)
	sums := make([][]uint64, search.k+1)
	sums[0] = []uint64{0}
	for device := 1; device <= search.k; device++ {
		sums[device] = slices.Repeat([]uint64{unreached}, len(ws[device].from))
	}
	done := search.walk(ws, limit, func(device, b int, runs func(func(int, int64))) {
		to := &sums[device+1][b-ws[device+1].lo]
		runs(func(a int, peak int64) {
			before := sums[device][a-ws[device].lo]
			if before == unreached {
				return
			}
			if here := before + scale.square(device, peak); here < *to {
				*to, ws[device+1].from[b-ws[device+1].lo] = here, int32(a)
			}
		})
	})
	if !done {
		return placed, false
	}
	return search.cuts(ws), true
}
