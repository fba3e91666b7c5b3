package stages

import (
	"context"
	"fmt"
	"math"
)

// first looks for a pipeline of any time if there is none yet.
func (call *solver) first(ctx context.Context, in *search) {
	if call.Stages == nil {
		if attempt := in.ask(ctx, math.Inf(1)); attempt.reached() {
			call.offer(attempt.plan())
		}
	}
}

// near is the relative gap from which narrow probes just below the best.
const near = 0.01

// narrow halves the distance between the bound and the best pipeline until they meet, or until the
// family has no better one. It first probes just below the best if another family found the best,
// and once the two are near: usually that probe is the last.
func (call *solver) narrow(ctx context.Context, in *search) {
	call.first(ctx, in)
	// The range below top is open: the best value, or a limit under which a knapsack had a gap.
	from, top, asked := call.LowerBound, call.Value, call.Sets > 0
	call.Sets = in.sets.Len()
	limit := from
	if asked {
		limit = call.Value * (1 - precision)
	}
	for call.Stages != nil && from < top*(1-precision) {
		attempt := in.ask(ctx, limit)
		switch {
		case attempt.stopped:
			return
		case attempt.reached():
			call.offer(attempt.plan())
			top = min(limit, call.Value)
		default:
			from = max(limit, attempt.next)
			if in.sets.Whole {
				call.raise(from, "search: no pipeline has its slowest stage below it")
			}
		}
		limit = from + (top-from)/2
		if top-from < near*top && !asked {
			limit, asked = top*(1-precision), true
		}
	}
}

// offer records a pipeline if it is the best.
func (call *solver) offer(plan *Plan) {
	loads, largest, err := call.Score(plan)
	if err != nil || largest >= call.Value {
		return
	}
	call.Plan, call.Loads, call.Value = *plan, loads, largest
	call.progress()
}

// raise records a bound if it is the highest.
func (call *solver) raise(bound float64, why string) {
	if bound > call.LowerBound {
		call.LowerBound, call.Bound = bound, why
		call.progress()
	}
}

func (call *solver) progress() {
	if call.report != nil {
		call.report(call.Value, call.LowerBound)
	}
}

// bounds computes the bounds that need no search: the slowest node at its best degrees, and the
// least work divided by the devices.
func (call *solver) bounds() {
	total := 0.0
	for node := range call.Nodes {
		total += call.leastWork(node)
		alone := math.Inf(1)
		for tensor, choices := range call.Nodes[node].Choices {
			for data, replicas := range call.Data {
				if replicas*call.Tensor[tensor] > call.Devices || replicas > call.Replicas {
					break
				}
				for i := range choices {
					if choice := &choices[i]; choice.InFlight+choice.Fixed <= call.Capacity*(1+rounding) {
						alone = min(alone, call.time(choice, data))
					}
				}
			}
		}
		if !math.IsInf(alone, 1) {
			call.raise(alone, fmt.Sprintf("largest node: %q takes it on the devices that suit it best", call.Nodes[node].Name))
		}
	}
	call.raise(total/float64(call.Devices)*(1-precision/10), fmt.Sprintf("average: the least device time of all nodes over %d devices", call.Devices))
}
