package stagedegrees

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/stagechain"
)

// shortest returns the shortest step found for stages within the caps. It starts from the stages
// with the least (m − 1)·slowest + sum of all stages, which is a step of m micro-batches without
// waits at its ends. Then it moves them as long as that shortens the step.
func (problem *problem) shortest(ctx context.Context) (*instance.Answer, error) {
	batches := float64(max(1, problem.in.Costs.Workload.MicroBatches))
	out := &instance.Answer{Uneven: instance.StepUneven, Claim: certificate.Claim{Bound: "stages, and the way through those behind", Rounding: certificate.Sums}}
	cost := func(form, a, b, behind int) float64 {
		if !problem.fits(form, a, b, behind) {
			return math.Inf(1)
		}
		one := problem.forms[form]
		return one.work(a, b) + 2*one.message(problem, b) + (one.update[b]-one.update[a])/batches
	}
	search := climber{problem: problem}
	start := search.even()
	half, cancel := instance.HalfOf(ctx)
	found, err := stagechain.Solve(half, problem.chain(batches-1, 1, cost))
	cancel()
	switch {
	case errors.Is(err, stagechain.ErrNone):
		return out, instance.ErrNone
	case err == nil:
		start = search.shorter(start, problem.stagesOf(found.Stages, cost))
	case start == nil: // if any stages fit, the most balanced ones do
		found, err := stagechain.Solve(ctx, problem.chain(1, 0, problem.share))
		if err != nil {
			return nil, err
		}
		start = problem.stagesOf(found.Stages, problem.share)
		if math.IsInf(search.step(start), 1) {
			return out, instance.ErrNone
		}
	}
	part, cancel := instance.HalfOf(ctx)
	out.LowerBound = problem.below(part) * (1 - instance.Tolerance)
	cancel()
	stages := search.climb(ctx, start)
	out.Map, out.Costs = problem.placed(stages)
	out.Value, out.Tried = search.step(stages), search.tried
	out.Stopped = ctx.Err() != nil
	out.Proved = out.Value*(1-instance.Tolerance) <= out.LowerBound
	return out, nil
}

// work returns the seconds of a micro-batch through items [a, b) and back.
func (one *form) work(a, b int) float64 {
	return one.forward[b] - one.forward[a] + one.backward[b] - one.backward[a]
}

// climber moves stages as long as that shortens the simulated step.
type climber struct {
	*problem
	tried int
}

// step returns the step of stages, +Inf if one exceeds its cap.
func (search *climber) step(stages []stage) float64 {
	for i, one := range stages {
		if !search.fits(one.form, one.a, one.b, len(stages)-1-i) {
			return math.Inf(1)
		}
	}
	search.tried++
	placed, costs := search.placed(stages)
	seconds := devicemap.StepSeconds(costs, search.in.Topology, placed)
	if seconds == nil {
		return math.Inf(1)
	}
	return *seconds
}

// shorter returns the stages with the shorter step.
func (search *climber) shorter(one, other []stage) []stage {
	if one == nil || search.step(other) <= search.step(one) {
		return other
	}
	return one
}

// even returns the best stages of one form with about equal work; nil if none fit.
func (search *climber) even() []stage {
	var best []stage
	least, items, gpus := math.Inf(1), search.items.Count(), len(search.in.Topology.Devices)
	for at, one := range search.forms {
		count := gpus / one.gpus
		if gpus%one.gpus != 0 || count > search.most {
			continue
		}
		stages, all := make([]stage, count), one.work(0, items)
		for i := range stages {
			stages[i].form = at
			if i > 0 {
				stages[i].a = stages[i-1].b
			}
			stages[i].b = stages[i].a + 1
			for last := items - (count - 1 - i); stages[i].b < last && (i == count-1 || one.work(0, stages[i].b)+one.work(stages[i].b, stages[i].b+1)/2 < all*float64(i+1)/float64(count)); {
				stages[i].b++
			}
		}
		if got := search.step(stages); got < least {
			best, least = stages, got
		}
	}
	return best
}

// climb tries to move each run of cuts by an item, and each stage to another form with as many
// GPUs, until nothing helps or the time ends.
func (search *climber) climb(ctx context.Context, stages []stage) []stage {
	best := search.step(stages)
	try := func(next []stage) bool {
		if ctx.Err() != nil {
			return false
		}
		got := search.step(next)
		if got >= best*(1-1e-12) {
			return false
		}
		best, stages = got, next
		return true
	}
	for gained := true; gained && ctx.Err() == nil; {
		gained = false
		for lo := range stages {
			for _, form := range search.sameSize(stages[lo].form) {
				next := slices.Clone(stages)
				next[lo].form = form
				gained = try(next) || gained
			}
			for hi := lo + 1; hi < len(stages); hi++ {
				for _, by := range []int{-1, 1} {
					if next := shifted(stages, lo, hi, by); next != nil {
						gained = try(next) || gained
					}
				}
			}
		}
		gained = search.swaps(stages, try) || gained
	}
	return stages
}

// swaps exchanges the forms of neighbours, which moves GPUs between them.
func (search *climber) swaps(stages []stage, try func([]stage) bool) bool {
	gained := false
	for i := 1; i < len(stages); i++ {
		if stages[i].form == stages[i-1].form {
			continue
		}
		next := slices.Clone(stages)
		next[i].form, next[i-1].form = next[i-1].form, next[i].form
		gained = try(next) || gained
	}
	return gained
}

// sameSize returns the other forms with as many GPUs.
func (search *climber) sameSize(form int) (out []int) {
	for other, one := range search.forms {
		if other != form && one.gpus == search.forms[form].gpus {
			out = append(out, other)
		}
	}
	return out
}

// shifted moves the cuts before stages lo+1 to hi by some items; nil if a stage becomes empty.
func shifted(stages []stage, lo, hi, by int) []stage {
	next := slices.Clone(stages)
	for i := lo; i < hi; i++ {
		next[i].b += by
		next[i+1].a += by
	}
	for _, one := range next {
		if one.a >= one.b {
			return nil
		}
	}
	return next
}
