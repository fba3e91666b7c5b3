package stages

import (
	"context"
	"fmt"
	"math"
)

// first looks for a pipeline of any time where there is none yet.
func (call *solver) first(ctx context.Context, in *search) {
	if call.Stage == nil {
		if attempt := in.ask(ctx, math.Inf(1), call.problem.Devices); attempt.reached() {
			call.offer(attempt.pipeline())
		}
	}
}

// narrow halves the distance between the bound and the best pipeline until
// they meet, or until the family has no better one. Once they are near, it
// asks just below the best: most often that is the last question.
func (call *solver) narrow(ctx context.Context, in *search) {
	call.from = call.LowerBound
	limit, asked := call.from, false
	for call.Stage != nil && call.from < call.Value*(1-precision) {
		attempt := in.ask(ctx, limit, call.problem.Devices)
		switch {
		case attempt.stopped:
			return
		case attempt.reached():
			before := call.Value
			call.offer(attempt.pipeline())
			if call.Value == before { // a knapsack was left open
				call.from = max(call.from, limit)
			}
		default:
			call.from = max(limit, attempt.next)
			if in.sets.Whole {
				call.raise(call.from, "search: no pipeline has its slowest stage below it")
			}
		}
		limit = call.from + (call.Value-call.from)/2
		if call.Value-call.from < near*call.Value && !asked {
			limit, asked = call.Value*(1-precision), true
		}
	}
}

// near is a hundredth: see narrow.
const near = 0.01

// offer keeps a pipeline if it is the best.
func (call *solver) offer(stage, choice []int) {
	loads, largest, err := call.problem.Score(stage, choice)
	if err != nil || largest >= call.Value {
		return
	}
	call.Stage, call.Choice, call.Loads, call.Value = stage, choice, loads, largest
	call.progress()
}

// raise keeps a bound if it is the highest.
func (call *solver) raise(bound float64, why string) {
	if bound > call.LowerBound {
		call.LowerBound, call.Bound = bound, why
		call.progress()
	}
}

func (call *solver) progress() {
	if call.set.Progress != nil {
		call.set.Progress(call.Value, call.LowerBound)
	}
}

// bounds are those that need no search.
func (call *solver) bounds() {
	total := 0.0
	seen := newView(call.problem, 1)
	for i := range call.problem.Nodes {
		opts := &seen.Nodes[i]
		time, _ := opts.Fastest()
		total += time
		choice := 0
		for choice < len(opts.Choice)-1 && opts.Memory[choice] > call.problem.Capacity*(1+rounding) {
			choice++
		}
		call.raise(opts.Time[choice], fmt.Sprintf("largest node: %q takes it alone", call.problem.Nodes[i].Name))
	}
	call.raise(total/float64(call.problem.Devices)*(1-precision/10), fmt.Sprintf("average: the fastest choices of all nodes over %d devices", call.problem.Devices))
}
