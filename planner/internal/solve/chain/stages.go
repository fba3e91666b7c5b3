package chain

import (
	"fmt"
	"slices"
)

// EmptyError says that no map that keeps the pins gives every device an item,
// where each must have one (Problem.Floor).
type EmptyError struct{ Device int }

func (e *EmptyError) Error() string {
	return fmt.Sprintf("chain: the pins leave no item for device %d", e.Device)
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
	exact func(d, a, b int) int64
	cells int64 // runs looked at so far
	most  int64 // then it ends
	polls int64
}

// stages solves a problem that has a Floor.
func (in *instance) stages(r *run) (Result, error) {
	if err := in.fillDevices(); err != nil {
		return Result{}, err
	}
	s := &stages{run: r, exact: func(d, a, b int) int64 { return in.Peak(d, a, b, 0) }}
	inc := s.first(in)
	floor := *in.Problem
	floor.Peak = func(d, a, b int, _ uint64) int64 { return in.Floor(d, a, b) }
	below := *in
	below.Problem = &floor
	s.task = newTask(&below, nil)
	b := s.bounds(r)
	low := s.seed(r, b.lower(), b.guess())
	s.bisect(r, &low)
	inc.lower = low.lower
	if m := s.filled(low.placement); s.worth(m).less(inc.value) {
		inc.placement, inc.value = m, s.worth(m)
	}
	if !inc.proved() && !r.stopped {
		s.better(&inc)
	}
	even := false
	if !r.stopped && !r.NoSquares {
		if m, found := s.evenOut(inc.value); found {
			inc.placement, even = m, inc.proved()
		}
	}
	res := Result{Optimal: inc.proved(), SquaresOptimal: even, Stopped: r.stopped, Probes: r.probes}
	res.Bound = b.name(inc.lower, in.Budgets)
	res.describe(newTask(in, nil), inc)
	return res, nil
}

// fillDevices narrows the windows to maps in which every device has an item.
func (in *instance) fillDevices() error {
	k := len(in.Budgets)
	for d := 1; d <= k; d++ {
		in.minCut[d] = max(in.minCut[d], in.minCut[d-1]+1)
		if in.minCut[d] > in.maxCut[d] {
			return &EmptyError{d - 1}
		}
	}
	for d := k - 1; d >= 0; d-- {
		in.maxCut[d] = min(in.maxCut[d], in.maxCut[d+1]-1)
	}
	return nil
}

// first is a map to begin with: that of the plain search, which takes Peak as
// if it never fell. Its bound means nothing.
func (s *stages) first(in *instance) incumbent {
	t := newTask(in, nil)
	s.task = t
	b := t.bounds(s.run)
	inc := t.seed(s.run, b.lower(), b.guess())
	t.bisect(s.run, &inc)
	inc.placement = s.filled(inc.placement)
	inc.value = s.worth(inc.placement)
	return inc
}

// filled moves cuts up where a device would have no item. The windows rise by
// one at least, so that it stays in them.
func (s *stages) filled(m placement) placement {
	m.cuts = slices.Clone(m.cuts)
	for d := 1; d < s.k; d++ {
		m.cuts[d] = max(m.cuts[d], m.cuts[d-1]+1)
	}
	return m
}

// worth is the largest share of a map, by Peak.
func (s *stages) worth(m placement) Share {
	worst := Share{0, 1}
	for d, b := range s.Budgets {
		worst = maxShare(worst, Share{s.exact(d, m.cuts[d], m.cuts[d+1]), b})
	}
	return worst
}
