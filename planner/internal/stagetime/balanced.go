package stagetime

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// balanced cuts a pipeline with too many stretches for a search. It minimizes the longest work of a
// stage, which sets a pipeline's pace, by cuts from one end within the caps. It uses only the given
// order of devices. The bound is all work divided by all devices.
func (pipeline *pipes) balanced(ctx context.Context, caps []int64) (*instance.Answer, error) {
	order := &pipeline.orders[0]
	out := instance.NoStep(append(slices.Clone(pipeline.notes),
		"the pipeline has too many stretches for a search for its shortest step: its stages are cut to about the same work"), "work")
	out.LowerBound = pipeline.anyOrder()
	low, high := 0., 0.
	for _, work := range order.work() {
		high += work[len(work)-1]
	}
	best, step := []int(nil), math.Inf(1)
	for count := 0; count < balances && (count == 0 || ctx.Err() == nil); count++ {
		limit := high // first any cuts that fit
		if count > 0 {
			limit = low + (high-low)/2
		}
		cuts := order.cutsWithin(limit, caps)
		out.Tried++
		if cuts == nil {
			low = limit
			if count == 0 {
				return out, instance.ErrNone
			}
			continue
		}
		high = limit
		if got := order.costs.step(cuts); got < step {
			best, step = cuts, got
		}
	}
	out.Map, out.Value, out.Stopped = instance.Restored(order.unitMap(best), order.order), step, ctx.Err() != nil
	return out, nil
}

// balances is the number of halvings between two limits, for a precision of one part in 10⁹.
const balances = 31

// work returns prefix sums of the items' work, by stage.
func (order *pipeOrder) work() [][]float64 {
	out := make([][]float64, len(order.costs.forward))
	for device := range out {
		out[device] = slices.Clone(order.costs.forward[device])
		for i, b := range order.costs.backward[device] {
			out[device][i] += b
		}
	}
	return out
}

// cutsWithin gives each stage in turn as many items as its work and its cap allow. It returns nil
// if items remain, or the last stage gets none.
func (order *pipeOrder) cutsWithin(limit float64, caps []int64) []int {
	costs, stages, items := order.costs, len(order.order), order.peaks.Count()
	cuts := make([]int, stages+1)
	for stage := range stages {
		a, last := cuts[stage], items-(stages-1-stage)
		ok := func(b int) bool {
			return costs.barred[stage][a] == costs.barred[stage][b] && order.peaks.Peak(stage, a, b) <= caps[order.order[stage]]
		}
		// Take as many as the work allows, then fewer until they fit.
		b := a + sort.Search(last-a, func(count int) bool {
			to := a + count + 1
			return costs.forward[stage][to]-costs.forward[stage][a]+costs.backward[stage][to]-costs.backward[stage][a] > limit
		})
		if stage == stages-1 && b < items {
			return nil
		}
		for b > a && !ok(b) {
			b--
		}
		if b == a || stage == stages-1 && b < items {
			return nil
		}
		cuts[stage+1] = b
	}
	return cuts
}
