package stages

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/lattice"
)

// precision is how near the bound must be for the answer to be the optimum.
const precision = 1e-9

// defaultSets is Settings.MaxSets where it is not set: their steps take some
// 60 MB, and Piper's own program stops at 40,000.
const defaultSets = 200_000

// solver holds the best pipeline and bound so far.
type solver struct {
	problem *Problem // reduced
	network *web
	set     Settings
	Solution
	// given is the number of nodes before they were reduced.
	given int
	// from is where the search goes on: below it there is nothing, or nothing
	// that it can tell.
	from float64
}

// Solve finds the straight pipeline whose slowest stage is the fastest. Faults
// of the problem come first; no pipeline within the capacity is an
// [*InfeasibleError]. The end of ctx or of the time limit leaves the best
// pipeline so far, or ctx's error where there is none.
func Solve(ctx context.Context, problem *Problem, set Settings) (*Solution, error) {
	if err := problem.Check(); err != nil {
		return nil, err
	}
	network, err := newWeb(problem)
	if err != nil {
		return nil, err
	}
	if set.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.TimeLimit)
		defer cancel()
	}
	if set.MaxSets == 0 {
		set.MaxSets = defaultSets
	}
	smaller := reduce(problem, network)
	rest, err := newWeb(&smaller.Problem)
	if err != nil {
		return nil, err
	}
	call := &solver{problem: &smaller.Problem, network: rest, set: set, given: len(problem.Nodes)}
	call.Value = math.Inf(1)
	call.bounds()
	sol, err := call.run(ctx)
	if err != nil {
		return nil, err
	}
	sol.Stage, sol.Choice = smaller.expand(problem, network, sol.Stage, sol.Choice)
	return problem.certify(sol, ctx.Err() != nil)
}

// certify ends an answer: Score judges it once more, of the problem as it was
// posed, and the bound is held against what it finds.
func (problem *Problem) certify(solution *Solution, stopped bool) (*Solution, error) {
	loads, largest, err := problem.Score(solution.Stage, solution.Choice)
	if err != nil {
		return nil, fmt.Errorf("the answer fails its check (please report this): %w", err)
	}
	claim := certificate.Claim{Value: solution.Value, LowerBound: solution.LowerBound, Bound: solution.Bound, Rounding: certificate.Sums, Stopped: stopped}
	if solution.Certificate, err = claim.Certify(largest); err != nil {
		return nil, err
	}
	solution.Loads = loads
	return solution, nil
}

// fewSets are searched at once: there is no need to begin with some of them.
const fewSets = 20_000

// run searches the prefixes of one order first, which is fast, and then, from
// the pipeline found, wider and wider bands around it up to as many down-sets
// as there is room for.
func (call *solver) run(ctx context.Context) (*Solution, error) {
	always := context.WithoutCancel(ctx)
	line := newSearch(call.problem, call.network, lattice.Enumerate(always, call.network.Graph, 0, math.MaxInt))
	call.first(always, line)
	call.narrow(ctx, line)
	all, width := line, 0
	whole := lattice.Enumerate(ctx, call.network.Graph, lattice.Everything, call.limit())
	for wider := 4; (whole == nil || whole.Len() > fewSets) && wider < len(call.network.Order); wider *= 2 {
		sets := lattice.Enumerate(ctx, call.network.Graph, wider, call.limit())
		if sets == nil {
			break
		}
		all, width = newSearch(call.problem, call.network, sets), wider
		call.first(ctx, all)
		call.narrow(ctx, all)
	}
	if whole != nil {
		all, width = newSearch(call.problem, call.network, whole), lattice.Everything
		call.first(ctx, all)
		call.narrow(ctx, all)
	}
	switch {
	case call.Stage == nil && ctx.Err() != nil:
		return nil, fmt.Errorf("no pipeline found in the time given: %w", context.Cause(ctx))
	case call.Stage == nil:
		return nil, call.explain(ctx, all)
	}
	if call.LowerBound < call.Value*(1-precision) { // an open gap: what sums may round by
		call.LowerBound *= 1 - precision
	}
	call.describe(all.sets, width, ctx.Err() != nil)
	return &call.Solution, nil
}

func (call *solver) describe(sets *lattice.Family, width int, stopped bool) {
	call.Sets = sets.Len()
	why := fmt.Sprintf("because there are more than %d in all", call.limit())
	if stopped {
		why = "because the search was cut short"
	}
	switch {
	case sets.Whole:
		call.Method = fmt.Sprintf("bisection over all %d down-sets of the graph", sets.Len())
	case width > 0:
		call.Method = fmt.Sprintf("bisection over the %d down-sets within %d places of one order, %s", sets.Len(), width, why)
	default:
		call.Method = fmt.Sprintf("bisection over the %d down-sets of one order, %s", sets.Len(), why)
	}
	if nodes := len(call.network.Order); nodes < call.given {
		call.Method += fmt.Sprintf("; %d nodes that cost nothing set aside", call.given-nodes)
	}
}

// limit bounds the down-sets by MaxSets and, in large graphs, by what it takes
// to list them: about a second.
func (call *solver) limit() int {
	return max(1, min(call.set.MaxSets, 70_000_000/len(call.network.Order)))
}
