package chain

import (
	"fmt"
	"slices"
)

// EmptyError says that no map that keeps the pins gives every device an item,
// where each must have one (Problem.Floor).
type EmptyError struct{ Device int }

func (err *EmptyError) Error() string {
	return fmt.Sprintf("chain: the pins leave no item for device %d", err.Device)
}

// stages is the search where Peak may fall when a run is widened, and every
// device has an item: what the messages of a pipeline's stages do. Greedy
// reaches prove nothing there, so it looks at every run that may be part of a
// better map, in a dynamic program over the cuts: layer d holds, for each cut
// after device d−1, the best of all ways to get there.
//
// Floor, which never falls, keeps it short: the search of the plain chain with
// Floor in place of Peak gives a bound, and windows for the cuts of any map
// within a limit. Of a row only the cuts are looked at from which Floor fits.
// That is items² · devices at most, and where the messages are much the same
// size, as between a transformer's blocks, little more than the windows.
type stages struct {
	*task // of Floor
	run   *run
	exact func(device, a, b int) int64
	cells int64 // runs looked at so far
	most  int64 // then it ends
	polls int64
}

// stages solves a problem that has a Floor.
func (in *instance) stages(limits *run) (Result, error) {
	if err := in.fillDevices(); err != nil {
		return Result{}, err
	}
	search := &stages{run: limits, exact: func(device, a, b int) int64 { return in.Peak(device, a, b, 0) }}
	inc := search.first(in)
	floor := *in.Problem
	floor.Peak = func(device, a, b int, _ uint64) int64 { return in.Floor(device, a, b) }
	below := *in
	below.Problem = &floor
	search.task = newTask(&below, nil)
	known := search.bounds(limits)
	low := search.seed(limits, known.lower(), known.guess())
	search.bisect(limits, &low)
	inc.lower = low.lower
	if placed := search.filled(low.placement); search.worth(placed).less(inc.value) {
		inc.placement, inc.value = placed, search.worth(placed)
	}
	if !inc.proved() && !limits.stopped {
		search.better(&inc)
	}
	even := false
	if !limits.stopped && !limits.NoSquares {
		if placed, found := search.evenOut(inc.value); found {
			inc.placement, even = placed, inc.proved()
		}
	}
	res := Result{SquaresProved: even, Stopped: limits.stopped, Probes: limits.probes}
	res.Bound = known.name(inc.lower, in.Budgets)
	res.describe(newTask(in, nil), inc)
	return res, nil
}

// fillDevices narrows the windows to maps in which every device has an item.
func (in *instance) fillDevices() error {
	k := len(in.Budgets)
	for device := 1; device <= k; device++ {
		in.minCut[device] = max(in.minCut[device], in.minCut[device-1]+1)
		if in.minCut[device] > in.maxCut[device] {
			return &EmptyError{device - 1}
		}
	}
	for device := k - 1; device >= 0; device-- {
		in.maxCut[device] = min(in.maxCut[device], in.maxCut[device+1]-1)
	}
	return nil
}

// first is a map to begin with: that of the plain search, which takes Peak as
// if it never fell. Its bound means nothing.
func (search *stages) first(in *instance) incumbent {
	job := newTask(in, nil)
	search.task = job
	known := job.bounds(search.run)
	inc := job.seed(search.run, known.lower(), known.guess())
	job.bisect(search.run, &inc)
	inc.placement = search.filled(inc.placement)
	inc.value = search.worth(inc.placement)
	return inc
}

// filled moves cuts up where a device would have no item. The windows rise by
// one at least, so that it stays in them.
func (search *stages) filled(placed placement) placement {
	placed.cuts = slices.Clone(placed.cuts)
	for device := 1; device < search.k; device++ {
		placed.cuts[device] = max(placed.cuts[device], placed.cuts[device-1]+1)
	}
	return placed
}

// worth is the largest share of a map, by Peak.
func (search *stages) worth(placed placement) Share {
	worst := Share{0, 1}
	for device, budget := range search.Budgets {
		worst = MaxShare(worst, Share{search.exact(device, placed.cuts[device], placed.cuts[device+1]), budget})
	}
	return worst
}
