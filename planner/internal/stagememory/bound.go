package stagememory

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// weightBound is a share that no cuts are below. At one moment of its own
// each device has at least f micro-batches of every chunk in flight, so that
// together they hold what is there throughout and f times what the units save;
// where all chunks have run back once, their gradients too. The largest item
// is on some device by itself.
func weightBound(peaks *instance.StagePeaks) float64 {
	var static, saved, grads, most, budgets, budget int64
	for i := range peaks.Count() {
		r := peaks.Costs.Summary(peaks.Start[i], peaks.Start[i+1])
		static, saved, grads, most = static+r.Static, saved+bareSaved(peaks.Items, i), grads+r.Grads, max(most, r.Static)
	}
	for d := range peaks.Overhead {
		b := peaks.In.Topology.Devices[d].Budget()
		static, budgets, budget = static+peaks.Overhead[d], budgets+b, max(budget, b)
	}
	all := static
	if peaks.In.Trains() {
		before, after := flying(peaks.In.Schedule())
		all = max(static+before*saved, static+grads+after*saved, static+grads)
	}
	return max(float64(all)/float64(budgets), float64(most+slices.Min(peaks.Overhead))/float64(budget))
}

// bareSaved is what an item's units save wherever a cut is: without inputs
// that might be a stage's buffer, and outputs handed on.
func bareSaved(items *instance.Items, item int) int64 {
	var n int64
	for _, u := range items.Units(item) {
		unit := &items.In.Costs.Units[u]
		n += max(0, timeline.Of(unit).Saved-unit.CheckpointedOutput-unit.Entry)
	}
	return n
}

// flying is, of the device with the least, the most micro-batches that every
// chunk has in flight at one moment: at any, and when all have gradients.
func flying(s costmodel.Schedule) (before, after int64) {
	before, after = math.MaxInt64, math.MaxInt64
	for rank := range s.Stages {
		count, ran := make([]int64, s.Chunks), make([]int64, s.Chunks)
		var b, a int64
		for _, p := range s.Phases(rank) {
			var second []int64
			p.Ends(func(action costmodel.Action) {
				if action.Backward {
					count[action.Chunk]--
					ran[action.Chunk] = 1
					return
				}
				count[action.Chunk]++
				b = max(b, slices.Min(count))
				a = max(a, slices.Min(count)*slices.Min(ran))
			}, func() { second = slices.Clone(count) }, func(times int64) {
				for c := range count {
					count[c] += times * (count[c] - second[c])
				}
			})
		}
		before, after = min(before, b), min(after, a)
	}
	return before, after
}
