package stages

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Solution is a certified pipeline. Its value is the slowest stage's time, computed by Score.
type Solution struct {
	certificate.Certificate
	Plan
	Loads []Load
	// Method names the algorithm, and why it was chosen.
	Method string
	// Sets is the number of down-sets searched.
	Sets int
}

// precision is the relative gap at which an answer counts as optimal.
const precision = 1e-9

// fewSets is the number of sets that a probe searches in about 10 ms.
const fewSets = 1000

// manySets is the most down-sets, whose tables then take about 100 MB.
const manySets = 100_000

// solver has the best pipeline and bound so far.
type solver struct {
	*Problem
	graph *network
	// report, if not nil, is called with every better value and bound.
	report func(largest, lowerBound float64)
	Solution
}

// Solve finds the pipeline with the fastest slowest stage. It first returns errors of the problem.
// If no pipeline is within the capacity, the error is an [*InfeasibleError]. If ctx ends, Solve
// returns the best pipeline so far, or ctx's error if there is none. progress, if not nil, is
// called with every better value and bound.
func Solve(ctx context.Context, problem *Problem, progress func(largest, lowerBound float64)) (*Solution, error) {
	if err := problem.Check(); err != nil {
		return nil, err
	}
	net, err := newNetwork(problem)
	if err != nil {
		return nil, err
	}
	within := *problem
	within.Data = slices.DeleteFunc(slices.Clone(problem.Data), func(data int) bool { return data > min(problem.Devices, problem.Replicas) })
	call := &solver{Problem: &within, graph: net, report: progress}
	call.Value = math.Inf(1)
	call.bounds()
	if err := call.run(ctx); err != nil {
		return nil, err
	}
	return call.certify(ctx.Err() != nil)
}

func newNetwork(problem *Problem) (*network, error) {
	net := &network{out: make([][]arc, len(problem.Nodes)), in: make([][]arc, len(problem.Nodes))}
	ends := make([][2]int, len(problem.Edges))
	for i := range problem.Edges {
		edge := &problem.Edges[i]
		ends[i] = [2]int{edge.From, edge.To}
		net.out[edge.From] = append(net.out[edge.From], arc{edge.To, edge})
		net.in[edge.To] = append(net.in[edge.To], arc{edge.From, edge})
	}
	if cycle := graph.Cycle(len(problem.Nodes), ends); cycle != nil {
		names := make([]string, 0, len(cycle)+1)
		for _, node := range append(cycle, cycle[0]) {
			names = append(names, fmt.Sprintf("%q", problem.Nodes[node].Name))
		}
		return nil, fmt.Errorf("nodes read each other in a circle: %s", strings.Join(names, " → "))
	}
	var err error
	net.ordered, err = newOrdered(len(problem.Nodes), ends)
	return net, err
}

// certify completes an answer: Score evaluates it again, and the claim is compared with the result.
func (call *solver) certify(stopped bool) (*Solution, error) {
	loads, largest, err := call.Score(&call.Plan)
	if err != nil {
		return nil, fmt.Errorf("the answer fails its check (please report this): %w", err)
	}
	if call.LowerBound < call.Value*(1-precision) { // a gap is left: allow for rounding of sums
		call.LowerBound *= 1 - precision
	}
	claim := certificate.Claim{Value: call.Value, LowerBound: call.LowerBound, Bound: call.Bound, Rounding: certificate.Sums, Stopped: stopped}
	if call.Certificate, err = claim.Certify(largest); err != nil {
		return nil, err
	}
	call.Loads = loads
	return &call.Solution, nil
}

// run searches the prefixes of one order first, which is fast. Then it searches wider and wider
// bands around it, and all down-sets if there are not too many. The answer of one band ends most of
// the next search at its first probe.
func (call *solver) run(ctx context.Context) error {
	always := context.WithoutCancel(ctx)
	line := newSearch(call.Problem, call.graph, enumerate(always, call.graph.ordered, 0, math.MaxInt))
	_, needs := call.largest()
	none := needs > call.Capacity*(1+rounding) // then only explain what would work
	if !none {
		if line.sets.Len() < fewSets {
			call.first(always, line) // an answer even without time
		}
		call.narrow(ctx, line)
	}
	all, width := line, 0
	for wider := 4; !all.sets.Whole; wider *= 2 {
		sets := enumerate(ctx, call.graph.ordered, wider, manySets)
		if sets == nil || ctx.Err() != nil {
			break
		}
		all, width = newSearch(call.Problem, call.graph, sets), wider
		if !none {
			call.narrow(ctx, all)
		}
	}
	switch {
	case call.Stages == nil && !none && ctx.Err() != nil:
		return fmt.Errorf("no pipeline found in the time given: %w", context.Cause(ctx))
	case call.Stages == nil:
		return call.explain(ctx, line, all)
	}
	call.describe(all.sets, width, ctx.Err() != nil)
	return nil
}

func (call *solver) describe(sets *family, width int, stopped bool) {
	call.Sets = sets.Len()
	why := fmt.Sprintf("because there are more than %d in all", manySets)
	if stopped {
		why = "because the search was cut short"
	}
	which := fmt.Sprintf("the %d down-sets of one order, %s", sets.Len(), why)
	switch {
	case sets.Whole:
		which = fmt.Sprintf("all %d down-sets of the graph", sets.Len())
	case width > 0:
		which = fmt.Sprintf("the %d down-sets within %d places of one order, %s", sets.Len(), width, why)
	}
	call.Method = "bisection over " + which
}
