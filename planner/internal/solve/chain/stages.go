package chain

import (
	"fmt"
	"slices"
)

// EmptyError says that no map with these pins gives every device an item, although each must have
// one (Problem.Filled).
type EmptyError struct{ Device int }

func (err *EmptyError) Error() string {
	return fmt.Sprintf("chain: the pins leave no item for device %d", err.Device)
}

// stages is the search for problems in which Peak may fall when a run grows. The reasons are the
// messages between a pipeline's stages, and the message buffers of devmap's engine. Greedy reaches
// prove nothing then. So it tries every run that may be part of a better map, in a dynamic program
// over the states of task. Layer d has, for each cut after device d−1 and each set of clusters
// placed, the best of all ways to it.
//
// Floor never falls, and limits the work. The search of the plain chain with Floor instead of Peak
// gives a bound, and windows for the cuts of any map within a limit. A row uses only the cuts from
// which Floor fits. That is items² · devices · 3^clusters at most. If messages have similar sizes,
// as between a transformer's blocks, it is little more than the windows.
type stages struct {
	*task // of Floor
	run   *run
	exact func(device, a, b, take int) int64
	whole bool  // all clusters are free: the answer is the best of all
	cells int64 // runs tried so far
	most  int64 // the search ends at this number; 0: no limit
	polls int64
}

// stages solves a problem with a Floor.
func (in *instance) stages(limits *run) (Result, error) {
	if in.Filled {
		if err := in.fillDevices(); err != nil {
			return Result{}, err
		}
	}
	search := &stages{run: limits, whole: len(in.clusters) <= limits.freeGroups()}
	job, inc := search.first(in)
	floor := *in.Problem
	floor.Peak = in.Floor
	below := *in
	below.Problem = &floor
	known, other := search.bound(&below, &inc)
	if value, _ := job.share(other); search.whole && value.less(inc.value) {
		inc.placement, inc.value = other, value
	}
	search.task = newTask(&below, job.where)
	search.exact = job.peak
	if !inc.proved() && !limits.stopped {
		search.better(&inc)
	}
	even := false
	if !limits.stopped && !limits.NoSquares {
		if placed, found := search.evenOut(inc.value); found {
			inc.placement, even = placed, inc.proved() && search.whole
		}
	}
	res := Result{SquaresProved: even, Stopped: limits.stopped, Probes: limits.probes}
	res.Bound = known.name(inc.lower, in.Budgets)
	res.describe(job, inc)
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

// first returns a map to start from, by the plain search, which assumes that Peak never falls. Its
// bound is not valid. If there are many clusters, they stay on the devices it chose.
func (search *stages) first(in *instance) (*task, incumbent) {
	var job *task
	var inc incumbent
	if search.whole {
		job = newTask(in, in.allFree())
		known := job.bounds(search.run)
		inc = job.seed(search.run, known.lower(), known.guess())
		job.bisect(search.run, &inc)
	} else {
		job, inc, _ = in.descend(search.run)
	}
	inc.placement = in.filled(inc.placement)
	inc.value, _ = job.share(inc.placement)
	return job, inc
}

// bound searches with Floor: its value is a lower bound, and its map may be better than the first.
func (search *stages) bound(below *instance, inc *incumbent) (known bounds, placed placement) {
	var low incumbent
	if search.whole {
		job := newTask(below, below.allFree())
		known = job.bounds(search.run)
		low = job.seed(search.run, known.lower(), known.guess())
		job.bisect(search.run, &low)
	} else {
		_, low, known = below.descend(search.run)
	}
	inc.lower = low.lower
	return known, below.filled(low.placement)
}

// filled moves cuts up if a device would have no item and must have one. The windows rise by at
// least one, so the cuts stay in them.
func (in *instance) filled(placed placement) placement {
	placed.cuts = slices.Clone(placed.cuts)
	for device := 1; in.Filled && device < len(in.Budgets); device++ {
		placed.cuts[device] = max(placed.cuts[device], placed.cuts[device-1]+1)
	}
	return placed
}
