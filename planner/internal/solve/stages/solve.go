package stages

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// precision is how near the bound must be for the answer to be the optimum.
const precision = 1e-9

// defaultSets is Settings.MaxSets where it is not set: their steps take some
// 60 MB, and Piper's own program stops at 40,000.
const defaultSets = 200_000

// solver holds the best pipeline and bound so far.
type solver struct {
	p   *Problem // reduced
	w   *web
	set Settings
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
func Solve(ctx context.Context, p *Problem, set Settings) (*Solution, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	w, err := newWeb(p)
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
	r := reduce(p, w)
	rest, err := newWeb(&r.Problem)
	if err != nil {
		return nil, err
	}
	s := &solver{p: &r.Problem, w: rest, set: set, given: len(p.Nodes)}
	s.Value = math.Inf(1)
	s.bounds()
	sol, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	sol.Stage, sol.Choice = r.expand(p, w, sol.Stage, sol.Choice)
	return p.certify(sol, ctx.Err() != nil)
}

// certify ends an answer: Score judges it once more, of the problem as it was
// posed, and the bound is held against what it finds.
func (p *Problem) certify(s *Solution, stopped bool) (*Solution, error) {
	loads, largest, err := p.Score(s.Stage, s.Choice)
	if err != nil {
		return nil, fmt.Errorf("the answer fails its check (please report this): %w", err)
	}
	claim := certificate.Claim{Value: s.Value, LowerBound: s.LowerBound, Bound: s.Bound, Rounding: certificate.Sums, Stopped: stopped}
	if s.Certificate, err = claim.Certify(largest); err != nil {
		return nil, err
	}
	s.Loads = loads
	return s, nil
}

// fewSets are searched at once: there is no need to begin with some of them.
const fewSets = 20_000

// run searches the prefixes of one order first, which is fast, and then, from
// the pipeline found, wider and wider bands around it up to as many down-sets
// as there is room for.
func (s *solver) run(ctx context.Context) (*Solution, error) {
	always := context.WithoutCancel(ctx)
	line := newSearch(s.p, s.w, enumerate(always, s.w, 0, math.MaxInt))
	s.first(always, line)
	s.narrow(ctx, line)
	all, width := line, 0
	whole := enumerate(ctx, s.w, everything, s.limit())
	for wider := 4; (whole == nil || whole.len() > fewSets) && wider < len(s.w.order); wider *= 2 {
		f := enumerate(ctx, s.w, wider, s.limit())
		if f == nil {
			break
		}
		all, width = newSearch(s.p, s.w, f), wider
		s.first(ctx, all)
		s.narrow(ctx, all)
	}
	if whole != nil {
		all, width = newSearch(s.p, s.w, whole), everything
		s.first(ctx, all)
		s.narrow(ctx, all)
	}
	switch {
	case s.Stage == nil && ctx.Err() != nil:
		return nil, fmt.Errorf("no pipeline found in the time given: %w", context.Cause(ctx))
	case s.Stage == nil:
		return nil, s.explain(ctx, all)
	}
	if s.LowerBound < s.Value*(1-precision) { // an open gap: what sums may round by
		s.LowerBound *= 1 - precision
	}
	s.describe(all.f, width, ctx.Err() != nil)
	return &s.Solution, nil
}

func (s *solver) describe(f *family, width int, stopped bool) {
	s.Sets = f.len()
	why := fmt.Sprintf("because there are more than %d in all", s.limit())
	if stopped {
		why = "because the search was cut short"
	}
	switch {
	case f.whole:
		s.Method = fmt.Sprintf("bisection over all %d down-sets of the graph", f.len())
	case width > 0:
		s.Method = fmt.Sprintf("bisection over the %d down-sets within %d places of one order, %s", f.len(), width, why)
	default:
		s.Method = fmt.Sprintf("bisection over the %d down-sets of one order, %s", f.len(), why)
	}
	if nodes := len(s.w.order); nodes < s.given {
		s.Method += fmt.Sprintf("; %d nodes that cost nothing set aside", s.given-nodes)
	}
}

// limit bounds the down-sets by MaxSets and, in large graphs, by what it takes
// to list them: about a second.
func (s *solver) limit() int {
	return max(1, min(s.set.MaxSets, 70_000_000/len(s.w.order)))
}
