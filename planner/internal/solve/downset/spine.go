package downset

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundspine"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// The methods of what goes along the spine.
const (
	bySpine    = "spine: stage after stage along the items that all others come before or after"
	spineBound = "spine: smaller loads were refuted stage after stage along the items that all others come before or after"
)

// alongSpine raises the bound along the graph's spine, looks for an answer there,
// and lets the tree know the windows that it leaves. What is refuted is checked apart
// from it, by sums that are cut elsewhere: where these do not tell, a load a little
// lower is checked.
func (call *contiguous) alongSpine(ctx context.Context, tree *divider) {
	spine := boundspine.New(netlist.New(tree.Instance), tree.before, tree.after, call.Answer.Value)
	if spine == nil {
		return
	}
	tree.Windows = spine.Windows
	call.refute(ctx, spine)
	const near = 2e-4
	low, before := call.Answer.LowerBound, call.Answer.Value
	for high := before * (1 - below); high-low > near*high && ctx.Err() == nil; {
		middle := low + (high-low)/2
		stage := spine.Answer(ctx, middle)
		if stage == nil {
			low = middle
			continue
		}
		call.Take(tree.places(stage), bySpine)
		high = min(middle, call.Answer.Value*(1-below))
	}
	if call.Answer.Value < before {
		call.refute(ctx, spine)
	}
}

// refute raises the bound along the spine.
func (call *contiguous) refute(ctx context.Context, spine *boundspine.Spine) {
	bound := spine.Bound(ctx, call.Answer.LowerBound, call.Answer.Value*(1-below))
	for _, part := range []float64{1, 1 - 1e-4, 1 - 1e-3} {
		if limit := part * bound; limit > call.Answer.LowerBound && boundcheck.CheckSpine(ctx, call.Problem, limit) == nil {
			call.Raise(limit, spineBound)
			return
		}
	}
}
