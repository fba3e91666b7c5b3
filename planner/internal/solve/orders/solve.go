package orders

import (
	"context"
	"math/rand/v2"
)

// Settings limit the search. The zero value is the usual search.
type Settings struct {
	// Nodes limits the branch and bound, Effort the number of passes placed by trial; 0: the usual.
	Nodes, Effort int
	Moves         int // of single passes, tried on the best order
	// Starts are orders to begin with, such as published ones. Those that do not fit are left out.
	Starts []Order
	Rule   *Rule // one to improve, of as many chunks; nil: none
}

// Rule is how each GPU chooses its next pass. It serves any number of micro-batches.
type Rule struct{ policy }

// Order returns the order that a rule makes, and its length; nil: its limits exclude each other.
func (rule *Rule) Order(problem *Problem) (Order, int64) {
	list := newLister(problem)
	if !list.run(rule.policy, never) {
		return nil, 0
	}
	return list.rows, list.length
}

// Solution is the best order found, with its proof.
type Solution struct {
	Order
	Replayed
	Bound
	// Complete: the bound is the order's length, and rests on [Problem.Bound] or on a complete
	// search.
	Complete bool
	Rule     *Rule // the best found
	Tried    int   // policies and nodes
}

// The usual limits, and the number of micro-batches per chunk with which policies are compared.
const (
	usualNodes  = 60_000
	usualEffort = 3_000_000
	exactPasses = 96 // of an order that branch and bound tries to complete
	perTrial    = 3
)

// Solve returns the shortest order that it finds within the caps. An error is a [*SmallError], or
// for numbers that cannot be added. It ends early, with a valid order, if the context does.
func Solve(ctx context.Context, problem Problem, settings Settings) (*Solution, error) {
	if err := problem.check(); err != nil {
		return nil, err
	}
	if settings.Nodes == 0 {
		settings.Nodes = usualNodes
	}
	if settings.Effort == 0 {
		settings.Effort = usualEffort
	}
	out := &Solution{Bound: problem.Bound()}
	for _, start := range settings.Starts {
		out.take(&problem, start)
	}
	out.byPolicy(ctx, &problem, settings)
	if out.Length > out.Value && settings.Moves > 0 {
		out.byMoves(ctx, &problem, settings.Moves)
	}
	if out.Length > out.Value && problem.passes() <= exactPasses {
		order, length, complete, nodes := problem.search(ctx, out.Length, settings.Nodes)
		out.Tried += nodes
		if order != nil {
			out.take(&problem, order)
		}
		if complete {
			out.Bound = Bound{length, BySearch}
		}
	}
	out.Complete = out.Length == out.Value
	return out, nil
}

// take keeps an order that is valid and shorter.
func (solution *Solution) take(problem *Problem, order Order) {
	got, err := problem.Replay(order)
	if err != nil || solution.Order != nil && got.Length >= solution.Length {
		return
	}
	solution.Replayed, solution.Order = got, order.clone()
}

// byPolicy improves policies on a number of micro-batches that shows the repeated pattern, and takes
// the orders that the best of them make for all.
func (solution *Solution) byPolicy(ctx context.Context, problem *Problem, settings Settings) {
	few := *problem
	few.MicroBatches = min(problem.MicroBatches, perTrial*len(problem.Caps)+4)
	climb := &climber{lister: newLister(&few), chunks: few.of(), length: never, random: rand.New(rand.NewPCG(1, 2))}
	climb.starts()
	if settings.Rule != nil {
		climb.try(settings.Rule.policy)
	}
	whole := newLister(problem)
	finish := func() {
		if climb.best.rank != nil && whole.run(climb.best, never) {
			solution.take(problem, whole.rows)
		}
	}
	finish()
	bound := few.Bound().Value
	for round := 0; round < 8 && ctx.Err() == nil && climb.length > bound; round++ {
		climb.climb(settings.Effort/8, bound)
	}
	finish()
	solution.Tried += climb.tried
	solution.Rule = &Rule{climb.best}
}
