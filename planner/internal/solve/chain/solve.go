package chain

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Settings limits a Solve; the zero value works.
type Settings struct {
	// Probes is the most probes for the largest share; 0 means no limit. Solve always finds a first
	// map.
	Probes int

	// FreeGroups is the most free groups whose devices are searched exactly, at a cost of
	// 3^FreeGroups; default 6, at most 12.
	FreeGroups int

	// NoSquares skips the second objective: any map with the least largest share is an answer.
	NoSquares bool

	// Cells limits the work on the sum of squares. Up to that many cells, the search is exact for
	// any Peak. Then, as always for an additive Peak, divide and conquer takes up to 8 times as
	// many. The default of 1<<27 takes one or two seconds for the former, and at most ten for the
	// latter.
	Cells int64

	// Progress, if not nil, is called from Solve's goroutine after each probe
	// and each device of the second objective.
	Progress func(Progress)
}

// Progress is the state of a Solve.
type Progress struct {
	Probes      int
	Best, Lower Share // largest share so far, and its lower bound
	Done, Total int   // devices of the second objective; 0 before it
}

// Result is the best map found, and what is proved about it.
type Result struct {
	Cuts        []int   // device d has the items [Cuts[d], Cuts[d+1])
	GroupDevice []int   // device of each group
	Peaks       []int64 // per device
	Bottleneck  int     // the first device with the largest share

	Value      Share // the largest share
	LowerBound Share // no map has a smaller largest share
	Bound      Bound // the argument for LowerBound

	Squares float64 // sum of squared shares

	SquaresProved bool // Value is optimal, and no map with that Value has less by 1e-12 of it
	Stopped       bool // by the context or Settings.Probes

	Probes int
}

// Claim returns the claim about the largest share. The caller certifies it, with code independent
// of Peak.
func (res *Result) Claim() certificate.Claim {
	return certificate.Claim{
		Value: res.Value.Float(), LowerBound: res.LowerBound.Float(), Bound: string(res.Bound),
		Rounding: certificate.Exact, Stopped: res.Stopped,
	}
}

// Solve returns the best map it can prove or find. If the context ends, it returns early with
// Stopped set. An error is a malformed problem or a *ConflictError for pins that no map satisfies.
// If devices must be filled, it may be an *EmptyError.
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

// describe fills in the fields that follow from the map.
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

// run is the limits of one Solve and their counters.
type run struct {
	Settings
	ctx     context.Context
	probes  int
	stopped bool
}

// stop reports that the search for the largest share must end.
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

// divideFactor is how many more cells divide may use than scan, as it serves longer chains.
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
