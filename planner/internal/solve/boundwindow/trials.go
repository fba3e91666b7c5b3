package boundwindow

import (
	"context"
	"math"
)

// Trials divide the placements within the limit, and in turn those within a
// smaller one: the smaller it is, the narrower are all windows, so that a load
// well below the limit is often refuted by a few branches where thousands of the
// whole tree say nothing about it (destructive bounds: Klein and Scholl,
// Computing lower bounds by destructive improvement, European Journal of
// Operational Research 112, 1999).
type Trials struct {
	*Tree
	// low is the highest load that was refuted, or was known not to be possible.
	low float64
	// now is the trial at hand, nil: none; left are the branches that it may
	// still have, owed those that the whole tree may before the next.
	now        *Tree
	left, owed int
	// part of the way from low to the limit is where the next trial is, most what
	// it may take.
	part float64
	most int
	// Tried counts the branches of all trials.
	Tried int
}

// The trials: half way at first, nearer to what is refuted where that was too far,
// and with more branches when they would gain little.
const (
	firstPart, leastPart = 0.5, 0.03
	firstMost, moreMost  = 50, 3
	// smallGap is a gap, as a part of the limit, at which all windows are about as
	// narrow as they can be, and the whole tree is left to itself.
	smallGap = 0.02
)

// NewTrials begin with the whole tree.
func NewTrials(tree *Tree) *Trials {
	return &Trials{Tree: tree, part: firstPart, most: firstMost, owed: 1}
}

// Raise says that no load below one is possible.
func (trials *Trials) Raise(low float64) { trials.low = math.Max(trials.low, low) }

// Bound is what no placement is below.
func (trials *Trials) Bound() float64 {
	return math.Max(math.Min(trials.low, trials.limit), trials.Tree.Bound())
}

// Step bounds one branch more.
func (trials *Trials) Step(ctx context.Context) {
	if trials.now == nil && (trials.owed > 0 || trials.Bound() > trials.limit*(1-smallGap)) {
		trials.owed = max(0, trials.owed-1)
		trials.Tree.Step(ctx)
		return
	}
	if trials.now == nil {
		low := trials.Bound()
		trials.now, trials.left = trials.within(low+trials.part*(trials.limit-low)), trials.most
	}
	trials.now.Lower(trials.limit)
	trials.now.Step(ctx)
	trials.Tried++
	trials.left--
	trials.owed++
	switch {
	case ctx.Err() != nil:
	case trials.now.Done():
		trials.Raise(trials.now.Bound())
		trials.now, trials.part = nil, math.Min(1, 2*trials.part)
	case trials.left <= 0:
		trials.now = nil
		if trials.part /= 2; trials.part < leastPart {
			trials.part, trials.most = firstPart, moreMost*trials.most
		}
	default:
	}
}
