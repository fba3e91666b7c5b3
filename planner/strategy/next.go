package strategy

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/devmap-dev/devmap/planner"
)

// Next are the next-best changes, each tried and reported whether it then fits or not. They are one
// GPU less or more, the edits, any assignment instead of a contiguous map, and the next larger GPU.
// All but one GPU less must lower the largest share (the step's time, if that is the objective) below
// value. Changes of the trained parameters are included. The order is by kind of change, not by
// gain.
func Next(ctx context.Context, asked planner.Problem, options Options, value float64) []Change {
	problem := newSearch(asked, options)
	if problem == nil || problem.Diffusion != nil {
		return nil
	}
	count := len(problem.Topology.Devices)
	out := slices.Concat(problem.tried(ctx, problem.on(count-1), math.Inf(1)), problem.tried(ctx, problem.on(count+1), notable*value))
	helped := families{}
	for _, change := range problem.edits() {
		if helped[change.family] {
			continue
		}
		got := problem.tried(ctx, problem.edited(change), notable*value)
		out = append(out, got...)
		helped.add(&change, len(got) > 0)
	}
	if strategy := problem.Workload.Strategy; !problem.Unconstrained && !problem.fixed("contiguous") && !problem.timed() && (strategy.Traits().Sequential || strategy == "") {
		changed := *problem
		changed.Unconstrained = true
		out = append(out, problem.tried(ctx, &changed, notable*value)...)
	}
	return followChanges(ctx, distinct(append(out, problem.nextLarger(ctx, notable*value)...)))
}

// nextLarger is the change to the smallest of the larger GPUs that gives less than a value.
func (problem *search) nextLarger(ctx context.Context, below float64) []Change {
	for _, changed := range problem.larger() {
		if change := problem.tried(ctx, changed, below); change != nil {
			return change
		}
	}
	return nil
}

// tried is the change to a problem; nil if it has no answer, or no largest share under below.
func (problem *search) tried(ctx context.Context, changed *search, below float64) []Change {
	row, ok := changed.first(ctx)
	if !ok || row.Solution.Value >= below {
		return nil
	}
	return []Change{problem.change(changed, &row)}
}

// Alternatives are for a map whose largest share, value, is set by one unit. The first result is
// the change to the fewest GPUs with the same share, nil if all are needed. The second are single
// changes that lower the share, whether they fit or not.
func Alternatives(ctx context.Context, problem planner.Problem, options Options, value float64) (fewer, lower []Change) {
	from := newSearch(problem, options)
	if from == nil || from.Diffusion != nil {
		return nil, nil
	}
	return from.fewest(ctx, value), from.lowering(ctx, value)
}

// lowering are the single changes of the same training (no adapters) that lower the largest share
// below value, whether they fit or not. It reports only the first of several batches.
func (problem *search) lowering(ctx context.Context, value float64) []Change {
	var out []Change
	helped := families{}
	for _, change := range problem.edits() {
		if helped[change.family] || changesTraining(&change) {
			continue
		}
		got := problem.tried(ctx, problem.edited(change), notable*value)
		out = append(out, got...)
		helped.add(&change, len(got) > 0)
	}
	return distinct(out)
}

// fewest is the change to the fewest of the first GPUs with the same largest share. It is nil if
// all are needed, or the request cannot ask for them. More GPUs are never worse, so it bisects.
func (problem *search) fewest(ctx context.Context, value float64) []Change {
	if problem.Workload.Strategy.Traits().Staged { // with fewer stages others are in flight
		return nil
	}
	count := len(problem.Topology.Devices)
	reaches := func(i int) bool {
		row, ok := problem.on(i + 1).first(ctx)
		return ok && row.Solution.Value <= value
	}
	least := 1 + sort.Search(count-1, reaches)
	if least == count {
		return nil
	}
	return distinct(problem.tried(ctx, problem.on(least), math.Inf(1)))
}

// notable is the factor by which a change must lower the largest share to be reported.
const notable = 0.995
