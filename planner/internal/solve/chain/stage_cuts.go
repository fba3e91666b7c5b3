package chain

import (
	"math"
	"slices"
)

// maxCuts keeps the windows and their data below 400 MiB.
const maxCuts = 1 << 24

// windows returns, by state, the cuts on maps within the caps, by Floor. ws is nil if there is no
// such map, or, with fits false, if there are too many cuts.
func (search *stages) windows() (ws []window, fits bool) {
	if ok, _ := search.probe(); !ok {
		return nil, true
	}
	near := search.nearest()
	ws = make([]window, len(near))
	total := 0
	for device := range search.k + 1 {
		for set := range search.sets {
			at := device*search.sets + set
			_, hi := search.window(device, set)
			hi = min(search.reach[at], hi)
			if search.Filled && device > 0 { // at least one item after the window before
				near[at] = max(near[at], near[at-search.sets]+1)
			}
			if near[at] < 0 || near[at] > hi {
				continue
			}
			total += hi - near[at] + 1
			if total > maxCuts {
				return nil, false
			}
			ws[at] = window{lo: near[at], from: make([]int32, hi-near[at]+1), took: make([]uint16, hi-near[at]+1)}
		}
	}
	if len(ws[0].from) == 0 || len(ws[len(ws)-1].from) == 0 {
		return nil, true
	}
	return ws, true
}

// window is the cuts [lo, lo+len(from)) of a state. Each cut has the best start of the previous
// device's run, and that device's clusters.
type window struct {
	lo   int
	from []int32
	took []uint16
}

func (cuts window) hi() int { return cuts.lo + len(cuts.from) - 1 }

// cuts follows the best starts back from the end.
func (search *stages) cuts(ws []window) placement {
	placed := placement{cuts: make([]int, search.k+1), groups: make([]uint64, search.k)}
	placed.cuts[search.k] = search.Items
	set := search.sets - 1
	for device := search.k; device > 0; device-- {
		cuts := &ws[device*search.sets+set]
		at := placed.cuts[device] - cuts.lo
		take := int(cuts.took[at])
		placed.cuts[device-1] = int(cuts.from[at])
		placed.groups[device-1] = search.base[device-1] | search.groups[take]
		set &^= take
	}
	return placed
}

// transition leads to a state: from cut a of the state before, with the clusters in take on the
// device between.
type transition struct {
	state, a, take int
	peak           int64
}

// walk is the dynamic program over the windows. For each state and each cut after its device it
// calls row. The argument each calls visit with every transition to the cut within the cap, fewer
// clusters first, and starts of the run from the right. The result is false if a limit ended it.
func (search *stages) walk(ws []window, best Share, row func(state, b int, each func(visit func(transition)))) bool {
	for device := range search.k {
		for set := range search.sets {
			to := (device+1)*search.sets + set
			for b := ws[to].lo; b <= ws[to].hi(); b++ {
				row(to, b, func(visit func(transition)) { search.transitions(ws, device, set, b, visit) })
				if search.ended() {
					return false
				}
			}
		}
		search.run.report(Progress{Best: best, Lower: best, Done: device + 1, Total: search.k})
	}
	return true
}

func (search *stages) transitions(ws []window, device, set, b int, visit func(transition)) {
	for take := range set + 1 {
		if take&^set == 0 {
			state := device*search.sets + set&^take
			search.runs(device, state, take, ws[state], b, visit)
		}
	}
}

// runs visits the runs [a, b) of a device that start in a window and are within the cap.
func (search *stages) runs(device, state, take int, cuts window, b int, visit func(transition)) {
	last := b
	if search.Filled {
		last--
	}
	for a := min(cuts.hi(), last); a >= cuts.lo; a-- {
		search.cells++
		peak := search.exact(device, a, b, take)
		if peak <= search.caps[device] {
			visit(transition{state, a, take, peak})
		} else if search.peak(device, a, b, take) > search.caps[device] {
			return
		}
	}
}

// ended checks the limits once in a while.
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

// better looks for the best map below the incumbent. If no limit ends it, and all clusters are
// free, the incumbent is then optimal.
func (search *stages) better(inc *incumbent) {
	search.undercut(inc.value)
	ws, fits := search.windows()
	if ws == nil {
		if fits && search.whole { // not even Floor fits
			inc.lower = inc.value
		}
		return
	}
	none := Share{math.MaxInt64, 1}
	least := make([][]Share, len(ws)) // by state and cut: the least largest share of the maps so far
	for state := range least {
		least[state] = slices.Repeat([]Share{none}, len(ws[state].from))
	}
	least[0][0] = Share{0, 1}
	done := search.walk(ws, inc.value, func(state, b int, each func(func(transition))) {
		cuts := &ws[state]
		to := &least[state][b-cuts.lo]
		each(func(by transition) {
			before := least[by.state][by.a-ws[by.state].lo]
			if !before.less(*to) {
				return
			}
			if here := MaxShare(before, Share{by.peak, search.Budgets[by.state/search.sets]}); here.less(*to) {
				*to = here
				cuts.take(b, by)
			}
		})
	})
	if !done {
		return
	}
	if got := least[len(ws)-1][0]; got.less(inc.value) {
		inc.placement, inc.value = search.cuts(ws), got
	}
	if search.whole {
		inc.lower = inc.value
	}
}

// take records the best transition to a cut.
func (cuts *window) take(b int, by transition) {
	cuts.from[b-cuts.lo], cuts.took[b-cuts.lo] = int32(by.a), uint16(by.take) // at most 12 clusters are free
}

// evenOut is [task.even] for stages: it returns the map within limit with the least sum of squared
// shares, with the same tie-breaking. False if a limit ended it.
func (search *stages) evenOut(limit Share) (placed placement, found bool) {
	search.limit(limit)
	ws, _ := search.windows()
	if ws == nil {
		return placed, false
	}
	search.most, search.polls = search.cells+search.run.cells(), search.cells
	scale := newRuler(search.Budgets, limit)
	sums := make([][]uint64, len(ws))
	for state := range sums {
		sums[state] = slices.Repeat([]uint64{unreached}, len(ws[state].from))
	}
	sums[0][0] = 0
	done := search.walk(ws, limit, func(state, b int, each func(func(transition))) {
		cuts := &ws[state]
		to := &sums[state][b-cuts.lo]
		each(func(by transition) {
			before := sums[by.state][by.a-ws[by.state].lo]
			if before == unreached {
				return
			}
			if here := before + scale.square(by.state/search.sets, by.peak); here < *to {
				*to = here
				cuts.take(b, by)
			}
		})
	})
	if !done || sums[len(ws)-1][0] == unreached {
		return placed, false
	}
	return search.cuts(ws), true
}
