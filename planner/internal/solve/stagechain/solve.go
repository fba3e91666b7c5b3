package stagechain

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// precision is the relative gap at which an answer counts as optimal.
const precision = 1e-9

// span is a range of the slowest stage's time that is not searched yet, low ≤ time < high. sum is a
// lower bound of its pipelines' sums.
type span struct{ low, high, sum float64 }

// search is the best pipeline so far, and the spans that may contain a better one.
type search struct {
	*Problem
	under  *floors
	stages []Stage
	value  float64
	spans  []span
}

// Solve finds the pipeline with the least value, and proves it.
//
// The least sum under a limit falls in steps as the limit rises. Each probe settles one whole step,
// which starts at its pipeline's slowest stage. Solve takes the spans between by their bounds:
// Steady times their low end plus Fill times the sum at their high end. It ends when no bound is
// below the answer's value.
//
// If ctx ends, Solve returns the best pipeline so far, or ctx's error if there is none. Without any
// pipeline the error is [ErrNone].
func Solve(ctx context.Context, problem *Problem) (*Solution, error) {
	if err := problem.Check(); err != nil {
		return nil, err
	}
	if problem.Fill == 0 {
		return problem.level(ctx)
	}
	call := &search{Problem: problem, under: problem.floorsOf(ctx), value: math.Inf(1)}
	if err := call.first(ctx); err != nil {
		return nil, err
	}
	for len(call.spans) > 0 && ctx.Err() == nil {
		call.split(ctx)
	}
	return call.answer(ctx.Err() != nil)
}

// first finds the pipeline with the least sum, with any time of the slowest stage. The floors give
// a first limit for the sum.
func (call *search) first(ctx context.Context) error {
	floor := call.under.sum[call.Units]
	for _, most := range []float64{1.01 * floor, 1.5 * floor, math.MaxFloat64} {
		asked := call.ask(ctx, call.under, math.MaxFloat64/1e9, most)
		stages, largest, sum := asked.best()
		switch {
		case asked.stopped:
			return fmt.Errorf("no pipeline found in the time given: %w", context.Cause(ctx))
		case stages != nil:
			call.take(stages, largest, sum)
			call.spans = []span{{0, largest, sum}}
			return nil
		}
	}
	return ErrNone
}

func (call *search) take(stages []Stage, largest, sum float64) {
	if value := call.Problem.value(largest, sum); value < call.value {
		call.value, call.stages = value, stages
	}
}

// bound returns a lower bound for pipelines of the span.
func (call *search) bound(of span) float64 { return call.Problem.value(of.low, of.sum) }

// split probes the middle of the span with the least bound, and replaces the span by its open
// parts.
func (call *search) split(ctx context.Context) {
	least := 0
	for i, each := range call.spans {
		if call.bound(each) < call.bound(call.spans[least]) {
			least = i
		}
	}
	of := call.spans[least]
	if call.bound(of) >= call.value*(1-precision) {
		call.spans = nil
		return
	}
	middle := of.low + (of.high-of.low)/2
	if !(middle < of.high) || of.high-of.low < precision*of.high {
		middle = of.low
	}
	most := (call.value - call.Steady*of.low) / call.Fill
	asked := call.ask(ctx, call.under, middle, most)
	if asked.stopped {
		return
	}
	call.spans = append(call.spans[:least], call.spans[least+1:]...)
	// Nothing changes between middle and next.
	if asked.next < of.high {
		call.add(span{asked.next, of.high, of.sum})
	}
	if stages, largest, sum := asked.best(); stages != nil {
		call.take(stages, largest, sum)
		call.add(span{of.low, largest, sum})
	}
}

func (call *search) add(of span) {
	if of.low < of.high && call.bound(of) < call.value*(1-precision) {
		call.spans = append(call.spans, of)
	}
}

func (call *search) answer(stopped bool) (*Solution, error) {
	lower := call.value
	for _, each := range call.spans {
		lower = min(lower, call.bound(each)*(1-precision))
	}
	return call.certified(call.stages, certificate.Claim{
		Value: call.value, LowerBound: lower, Rounding: certificate.Sums, Stopped: stopped,
		Bound: "dynamic programming over the stages' ends, devices and sum, for every time of the slowest stage",
	})
}

// certified scores stages and certifies the claim.
func (problem *Problem) certified(stages []Stage, claim certificate.Claim) (*Solution, error) {
	value, err := problem.Score(stages)
	if err != nil {
		return nil, fmt.Errorf("the answer fails its check (please report this): %w", err)
	}
	out := &Solution{Stages: stages}
	out.Certificate, err = claim.Certify(value)
	return out, err
}
