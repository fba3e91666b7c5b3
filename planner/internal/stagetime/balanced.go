package stagetime

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// balanced cuts a pipeline of too many stretches for a search: so that the
// longest work of a stage is the least that cuts from one end find within the
// caps, which is what sets a pipeline's pace, in the order of the devices
// alone. The bound is that of all work on all devices.
func (s *pipes) balanced(ctx context.Context, caps []int64) (*instance.Answer, error) {
	o := &s.orders[0]
	out := newAnswer(append(slices.Clone(s.notes),
		"the pipeline has too many stretches for a search for its shortest step: its stages are cut to about the same work"), "work")
	out.LowerBound = s.anyOrder()
	low, high := 0., 0.
	for _, work := range o.work() {
		high += work[len(work)-1]
	}
	best, step := []int(nil), math.Inf(1)
	for n := 0; n < balances && (n == 0 || ctx.Err() == nil); n++ {
		limit := high // the first time whatever fits
		if n > 0 {
			limit = low + (high-low)/2
		}
		cuts := o.cutsWithin(limit, caps)
		out.Tried++
		if cuts == nil {
			low = limit
			if n == 0 {
				return out, instance.ErrNone
			}
			continue
		}
		high = limit
		if got := o.costs.step(cuts); got < step {
			best, step = cuts, got
		}
	}
	out.Map, out.Value, out.Stopped = instance.Restored(o.unitMap(best), o.order), step, ctx.Err() != nil
	return out, nil
}

// balances halve what is between two limits, to one part in 10⁹.
const balances = 31

// work is, by stage, a prefix sum of the items' work.
func (o *pipeOrder) work() [][]float64 {
	out := make([][]float64, len(o.costs.forward))
	for d := range out {
		out[d] = slices.Clone(o.costs.forward[d])
		for i, b := range o.costs.backward[d] {
			out[d][i] += b
		}
	}
	return out
}

// cutsWithin gives each stage in turn as many items as its work and its cap
// allow; nil where that leaves some, or nothing for the last.
func (o *pipeOrder) cutsWithin(limit float64, caps []int64) []int {
	c, stages, items := o.costs, len(o.order), o.peaks.Count()
	cuts := make([]int, stages+1)
	for s := range stages {
		a, last := cuts[s], items-(stages-1-s)
		ok := func(b int) bool {
			return c.barred[s][a] == c.barred[s][b] && o.peaks.Peak(s, a, b) <= caps[o.order[s]]
		}
		// As many as the work allows, then fewer until they fit.
		b := a + sort.Search(last-a, func(n int) bool {
			to := a + n + 1
			return c.forward[s][to]-c.forward[s][a]+c.backward[s][to]-c.backward[s][a] > limit
		})
		if s == stages-1 && b < items {
			return nil
		}
		for b > a && !ok(b) {
			b--
		}
		if b == a || s == stages-1 && b < items {
			return nil
		}
		cuts[s+1] = b
	}
	return cuts
}
