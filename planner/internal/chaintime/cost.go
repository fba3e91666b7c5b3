package chaintime

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// cost orders maps: the time of a step in ticks, then the bytes that cross at cuts, then the number
// of cuts. Times are fixed-point numbers, so sums do not depend on their order and equal devices
// tie.
type cost struct{ time, bytes, cuts int64 }

func (sum cost) plus(other cost) cost {
	return cost{sum.time + other.time, sum.bytes + other.bytes, sum.cuts + other.cuts}
}

func (sum cost) minus(other cost) cost {
	return cost{sum.time - other.time, sum.bytes - other.bytes, sum.cuts - other.cuts}
}

func (sum cost) less(other cost) bool {
	switch {
	case sum.time != other.time:
		return sum.time < other.time
	case sum.bytes != other.bytes:
		return sum.bytes < other.bytes
	}
	return sum.cuts < other.cuts
}

// fixedPoint holds the parts of a device map's step as fixed-point numbers. One device works at a
// time.
type fixedPoint struct {
	Sums
	peaks *instance.MapPeaks
	items int

	scale  float64   // ticks per second
	unit   [][]int64 // by device and unit, all passes of a step
	update [][]int64 // the same for the optimizer
	cross  [][]int64 // by kind of output, as [Sums.Crossings]; one time for all pairs of equal devices
}

// newFixedPoint computes the parts at given waits; nil if the context ends first.
func newFixedPoint(ctx context.Context, peaks *instance.MapPeaks, waits steptime.Waits) *fixedPoint {
	point := &fixedPoint{Sums: *NewSums(peaks.In, waits), peaks: peaks, items: peaks.Count()}
	seconds, update := point.Seconds()
	crossing := point.kindsOf(point.rowUntil(ctx))
	if crossing == nil && ctx.Err() != nil {
		return nil
	}
	cuts := float64(point.devices + 2*peaks.Tied() + 2)
	longest := slowestSum(seconds) + slowestSum(update) + cuts*largest(crossing)
	point.scale = math.Ldexp(1, tickBits-math.Ilogb(max(longest, math.SmallestNonzeroFloat32)))
	point.unit, point.update, point.cross = point.ticks(seconds), point.ticks(update), point.ticks(crossing)
	return point
}

// rowUntil returns a function that makes rows of times between devices. Equal devices share one
// time. Rows are nil once the context has ended.
func (point *fixedPoint) rowUntil(ctx context.Context) func(bytes int64, there, back, token float64) []float64 {
	const often = 1 << 18 // pairs of devices between two checks
	count := 0
	return func(bytes int64, there, back, token float64) []float64 {
		if point.alike {
			return []float64{point.pair(0, 1, bytes, there, back, token)}
		}
		if count += point.devices * point.devices; count >= often {
			if count = 0; ctx.Err() != nil {
				return nil
			}
		}
		return point.Between(bytes, there, back, token)
	}
}

// crossing returns the cost of sending a unit's output to the next unit's device; false if no link
// joins the two.
func (point *fixedPoint) crossing(from, to, unit int) (cost, bool) {
	if from == to {
		return cost{}, true
	}
	pair := from*point.devices + to
	if point.alike {
		pair = 0
	}
	ticks := point.cross[point.Size[unit]][pair]
	return cost{ticks, point.In.Timed().Units[unit].Work.Output, 1}, ticks >= 0
}
