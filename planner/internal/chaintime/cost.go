package chaintime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// cost is what maps are compared by: the time of a step in ticks, then the
// bytes that cross at cuts, then the number of cuts. Times are counted in
// fixed point, so that sums do not depend on their order and equal devices
// tie.
type cost struct{ time, bytes, cuts int64 }

func (a cost) plus(b cost) cost { return cost{a.time + b.time, a.bytes + b.bytes, a.cuts + b.cuts} }

func (a cost) minus(b cost) cost { return cost{a.time - b.time, a.bytes - b.bytes, a.cuts - b.cuts} }

func (a cost) less(b cost) bool {
	switch {
	case a.time != b.time:
		return a.time < b.time
	case a.bytes != b.bytes:
		return a.bytes < b.bytes
	}
	return a.cuts < b.cuts
}

// fixedPoint is the step of a device map as sums in fixed point: one device
// works at a time.
type fixedPoint struct {
	Sums
	peaks *instance.MapPeaks
	items int

	scale  float64   // ticks a second
	unit   [][]int64 // by device and unit, all passes of a step
	update [][]int64 // likewise, of the optimizer
	cross  [][]int64 // by kind of output, as [Sums.Crossings]
}

// newFixedPoint prepares the sums at given waits.
func newFixedPoint(peaks *instance.MapPeaks, waits steptime.Waits) *fixedPoint {
	t := &fixedPoint{Sums: *NewSums(peaks.In, waits), peaks: peaks, items: peaks.Count()}
	seconds, update := t.Seconds()
	crossing := t.Crossings()
	cuts := float64(t.devices + 2*peaks.Tied() + 2)
	longest := slowest(seconds) + slowest(update) + cuts*largest(crossing)
	t.scale = math.Ldexp(1, tickBits-math.Ilogb(max(longest, math.SmallestNonzeroFloat32)))
	t.unit, t.update, t.cross = t.ticks(seconds), t.ticks(update), t.ticks(crossing)
	return t
}

// crossing is what unit u's output costs on its way to the next unit's
// device; false where no link joins the two.
func (t *fixedPoint) crossing(from, to, u int) (cost, bool) {
	if from == to {
		return cost{}, true
	}
	ticks := t.cross[t.Size[u]][from*t.devices+to]
	return cost{ticks, t.In.Costs.Units[u].Work.Output, 1}, ticks >= 0
}
