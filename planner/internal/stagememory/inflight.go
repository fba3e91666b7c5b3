package stagememory

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// inFlight returns the most micro-batches that every chunk has in flight at one moment, for the
// rank with the least. before is for any moment, and after for moments with gradients of all
// chunks.
func inFlight(schedule costmodel.Schedule) (before, after int64) {
	before, after = math.MaxInt64, math.MaxInt64
	for rank := range schedule.Stages {
		count, ran := make([]int64, schedule.Chunks), make([]int64, schedule.Chunks)
		var b, a int64
		for _, phase := range order.Phases(schedule, rank) {
			var second []int64
			phase.Ends(func(action order.Action) {
				switch {
				case action.Kind.Ends():
					count[action.Chunk]--
					ran[action.Chunk] = 1
					return
				case action.Kind != order.Forward:
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
