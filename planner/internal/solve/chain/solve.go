package chain

import "context"

// Settings are the limits of a Solve; the zero value works.
type Settings struct {
	// Probes ends the search for the largest share after so many probes;
	// 0 means no limit. A first map is always found.
	Probes int

	// FreeGroups is the number of free groups up to which their devices are
	// searched exactly, at a cost of 3^FreeGroups; default 6, at most 12.
	FreeGroups int

	// NoSquares leaves the second objective out: any map of the least largest
	// share will do.
	NoSquares bool

	// Cells bounds the work on the sum of squares: exact for any Peak up to
	// so many cells, then, as always for an additive Peak, by divide and
	// conquer up to 8 times as many. The default of 1<<27 is a second or two
	// of the former and, at most, ten of the latter.
	Cells int64

	// Progress, if not nil, is called from Solve's goroutine after each probe
	// and each device of the second objective.
	Progress func(Progress)
}

// Progress is where a Solve stands.
type Progress struct {
	Probes      int
	Best, Lower Share // largest share so far, and its bound
	Done, Total int   // devices of the second objective; 0 before it
}

// Result is the map found, and what is known about it.
type Result struct {
	Cuts        []int   // device d holds the items [Cuts[d], Cuts[d+1])
	GroupDevice []int   // device of each group
	Peaks       []int64 // per device
	Bottleneck  int     // the first device with the largest share

	Value      Share // the largest share
	LowerBound Share // no map has a smaller largest share
	Bound      Bound // the argument for LowerBound

	Squares float64 // sum of squared shares

	Optimal        bool // Value is the least there is
	SquaresOptimal bool // so is Squares among maps with that Value, up to 1e-12 of it
	Stopped        bool // by the context or Settings.Probes

	Probes int
}

// Solve returns the best map it can prove or find. When the context ends it
// returns early with Stopped set; the error is about the problem only: a
// malformed one, or a *ConflictError (under a Floor an *EmptyError too) for
// pins that no map satisfies.
func Solve(ctx context.Context, p Problem, s Settings) (Result, error) {
	if err := p.check(); err != nil {
		return Result{}, err
	}
	in, err := newInstance(&p)
	if err != nil {
		return Result{}, err
	}
	r := &run{ctx: ctx, Settings: s}
	if p.Floor != nil {
		return in.stages(r)
	}
	var t *task
	var inc incumbent
	var b bounds
	if len(in.clusters) <= r.freeGroups() {
		where := make([]int, len(in.clusters))
		for i := range where {
			where[i] = free
		}
		t = newTask(in, where)
		b = t.bounds(r)
		inc = t.seed(r, b.lower(), b.guess())
		t.bisect(r, &inc)
	} else {
		t, inc, b = in.descend(r)
	}
	res := Result{Optimal: inc.proved()}
	if !r.stopped && !r.NoSquares {
		if m, found, proved := t.even(r, inc.value); found {
			inc.placement = m
			res.SquaresOptimal = proved && res.Optimal && len(in.clusters) <= r.freeGroups()
		}
	}
	res.Stopped, res.Probes = r.stopped, r.probes
	res.Bound = b.name(inc.lower, p.Budgets)
	res.describe(t, inc)
	return res, nil
}

// describe fills in what follows from the map alone.
func (res *Result) describe(t *task, inc incumbent) {
	res.Cuts = inc.cuts
	res.LowerBound = inc.lower
	res.Value, res.Bottleneck = t.share(inc.placement)
	res.GroupDevice = make([]int, t.Groups)
	for d, b := range t.Budgets {
		for g := range t.Groups {
			if inc.groups[d]>>g&1 != 0 {
				res.GroupDevice[g] = d
			}
		}
		peak := t.Peak(d, inc.cuts[d], inc.cuts[d+1], inc.groups[d])
		res.Peaks = append(res.Peaks, peak)
		s := Share{peak, b}.Float()
		res.Squares += float64(s * s)
	}
}

// run is the limits of one Solve and the counters that meet them.
type run struct {
	Settings
	ctx     context.Context
	probes  int
	stopped bool
}

// stop says whether to end the search for the largest share.
func (r *run) stop() bool {
	r.stopped = r.stopped || r.Probes > 0 && r.probes >= r.Probes
	return r.cancelled() || r.stopped
}

func (r *run) cancelled() bool {
	r.stopped = r.stopped || r.ctx.Err() != nil
	return r.stopped
}

func (r *run) freeGroups() int {
	if r.FreeGroups <= 0 {
		return 6
	}
	return min(r.FreeGroups, 12)
}

// divideFactor is how many more cells divide may use than scan: it is there
// for chains that are too long for scan.
const divideFactor = 8

func (r *run) cells() int64 {
	if r.Cells <= 0 {
		return 1 << 27
	}
	return r.Cells
}

func (r *run) report(p Progress) {
	if r.Progress != nil {
		p.Probes = r.probes
		r.Progress(p)
	}
}
