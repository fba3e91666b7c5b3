package boundwindow

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/maxflow"
)

// fix narrows the windows by what a boundary would cost with an item on its
// other side: where that lifts the bound over the limit, no placement within
// the limit has it there. What the item adds to the minimum cut is what can
// still be sent from it, or to it. (For linear programs: reduced cost fixing,
// Dantzig, Fulkerson and Johnson, Operations Research 2, 1954.)
func (dual *dual) fix(ctx context.Context, within *windows) (changed bool) {
	value := dual.evaluate(ctx)
	slack := (dual.limit*(1+graph.Rounding) - value) * float64(dual.stages) / dual.unit
	if !(slack >= 0) || slack > maxflow.Unlimited/2 {
		return false
	}
	enough := int64(math.Ceil(slack)) + 1
	for boundary, cut := range dual.cuts {
		if ctx.Err() != nil {
			return changed
		}
		changed = dual.fixAt(boundary, cut, within, enough) || changed
	}
	return changed
}

// fixAt does so for one boundary.
func (dual *dual) fixAt(boundary int, cut *cut, within *windows, enough int64) (changed bool) {
	kept := append([]int64(nil), cut.Left...)
	before := make([]bool, len(cut.node))
	for _, item := range cut.free {
		before[item] = cut.Inside(cut.node[item])
	}
	for _, item := range dual.cones.order {
		if cut.node[item] <= outside || before[item] || within.first[item] > boundary {
			continue
		}
		if cut.RunTo(cut.node[item], outside, enough) >= enough {
			each(dual.cones.after[item], func(other int) {
				within.first[other] = max(within.first[other], boundary+1)
			})
			changed = true
		}
		copy(cut.Left, kept)
	}
	for _, item := range dual.cones.back {
		if cut.node[item] <= outside || !before[item] || within.last[item] <= boundary {
			continue
		}
		if cut.RunTo(inside, cut.node[item], enough) >= enough {
			each(dual.cones.before[item], func(other int) {
				within.last[other] = min(within.last[other], boundary)
			})
			changed = true
		}
		copy(cut.Left, kept)
	}
	return changed
}
