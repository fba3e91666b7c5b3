package chain

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

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

	SquaresProved bool // no map with that Value, which is proved, has less by 1e-12 of it
	Stopped       bool // by the context or Settings.Probes

	Probes int
}

// Claim is what is said of the largest share, for the caller to certify: what
// Peak is the closed form of is not known here.
func (res *Result) Claim() certificate.Claim {
	return certificate.Claim{
		Value: res.Value.Float(), LowerBound: res.LowerBound.Float(), Bound: string(res.Bound),
		Rounding: certificate.Exact, Stopped: res.Stopped,
	}
}

// Solve returns the best map it can prove or find. When the context ends it
// returns early with Stopped set; the error is about the problem only: a
// malformed one, or a *ConflictError (where devices are to be filled an *EmptyError too) for
// pins that no map satisfies.
func Solve(ctx context.Context, problem Problem, settings Settings) (Result, error) {
	if err := problem.check(); err != nil {
		return Result{}, err
	}
	in, err := newInstance(&problem)
	if err != nil {
		return Result{}, err
	}
	limits := &run{ctx: ctx, Settings: settings}
	if problem.Floor != nil {
		return in.stages(limits)
	}
	var job *task
	var inc incumbent
	var known bounds
	if len(in.clusters) <= limits.freeGroups() {
		job = newTask(in, in.allFree())
		known = job.bounds(limits)
		inc = job.seed(limits, known.lower(), known.guess())
		job.bisect(limits, &inc)
	} else {
		job, inc, known = in.descend(limits)
	}
	res := Result{}
	if !limits.stopped && !limits.NoSquares {
		if placed, found, proved := job.even(limits, inc.value); found {
			inc.placement = placed
			res.SquaresProved = proved && inc.proved() && len(in.clusters) <= limits.freeGroups()
		}
	}
	res.Stopped, res.Probes = limits.stopped, limits.probes
	res.Bound = known.name(inc.lower, problem.Budgets)
	res.describe(job, inc)
	return res, nil
}

// describe fills in what follows from the map alone.
func (res *Result) describe(job *task, inc incumbent) {
	res.Cuts = inc.cuts
	res.LowerBound = inc.lower
	res.Value, res.Bottleneck = job.share(inc.placement)
	res.GroupDevice = make([]int, job.Groups)
	for device, budget := range job.Budgets {
		for group := range job.Groups {
			if inc.groups[device]>>group&1 != 0 {
				res.GroupDevice[group] = device
			}
		}
		peak := job.Peak(device, inc.cuts[device], inc.cuts[device+1], inc.groups[device])
		res.Peaks = append(res.Peaks, peak)
		share := Share{peak, budget}.Float()
		res.Squares += float64(share * share)
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
func (limits *run) stop() bool {
	limits.stopped = limits.stopped || limits.Probes > 0 && limits.probes >= limits.Probes
	return limits.cancelled() || limits.stopped
}

func (limits *run) cancelled() bool {
	limits.stopped = limits.stopped || limits.ctx.Err() != nil
	return limits.stopped
}

func (limits *run) freeGroups() int {
	if limits.FreeGroups <= 0 {
		return 6
	}
	return min(limits.FreeGroups, 12)
}

// divideFactor is how many more cells divide may use than scan: it is there
// for chains that are too long for scan.
const divideFactor = 8

func (limits *run) cells() int64 {
	if limits.Cells <= 0 {
		return 1 << 27
	}
	return limits.Cells
}

func (limits *run) report(progress Progress) {
	if limits.Progress != nil {
		progress.Probes = limits.probes
		limits.Progress(progress)
	}
}
