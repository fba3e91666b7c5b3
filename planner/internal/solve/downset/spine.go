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

// spinePart is the part of the time that is left in which the spine has to be done.
const spinePart = 0.6

// alongSpine raises the bound along the graph's spine, looks for an answer there,
// and lets the tree know the windows that it leaves. What is refuted is checked apart
// from it, and where the check does not tell, a load a little lower.
func (call *contiguous) alongSpine(ctx context.Context, tree *divider) {
	if end := partOf(ctx, spinePart); !end.IsZero() {
		part, cancel := context.WithDeadline(ctx, end)
		defer cancel()
		ctx = part
	}
	spine := boundspine.New(ctx, netlist.New(tree.Instance), tree.before, tree.after, call.Answer.Value)
	if spine == nil {
		return
	}
	tree.Windows = spine.Windows
	call.refute(ctx, spine)
	const near = 2e-4
	low, before := call.Answer.LowerBound, call.Answer.Value
	// Where nothing is sure to cost anything the range would be halved for ever: a half of the
	// least number above zero is zero.
	for high := before * (1 - below); high-low > max(near*high, netlist.MinLoad) && ctx.Err() == nil; {
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

// refute raises the bound along the spine. Where all loads are multiples of a step,
// what is nearly a step below the answer is all that there is to refute. The check
// is asked about that too where the bound is near: its cells are others.
func (call *contiguous) refute(ctx context.Context, spine *boundspine.Spine) {
	const nearly, near = 0.75, 1e-3
	value := call.Answer.Value
	most := min(value*(1-below), value-nearly*call.Step)
	bound := spine.Bound(ctx, call.Answer.LowerBound, most)
	limits := []float64{bound, bound * (1 - near/10), bound * (1 - near)}
	if max(bound, call.Answer.LowerBound) > most*(1-near) {
		limits = append([]float64{most}, limits...)
	}
	for _, limit := range limits {
		if limit > call.Answer.LowerBound && boundcheck.CheckSpine(ctx, call.Problem, limit) == nil {
			call.Raise(limit, spineBound)
			return
		}
	}
}
