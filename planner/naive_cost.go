package planner

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
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

// naiveStep is the step of a device map as sums: one device works at a time.
type naiveStep struct {
	l       *layout
	pins    *pins
	devices int
	items   int
	train   bool
	pace    pace
	// passes are the micro-batches of a step, tokens those generated after it.
	passes, tokens float64

	scale  float64   // ticks a second
	unit   [][]int64 // by device and unit, all passes of a step
	update [][]int64 // likewise, of the optimizer
	// size numbers the distinct outputs of units; cross is the time that one
	// takes from device to device, -1 where no link joins them.
	size  []int
	cross [][]int64
}

// newNaiveStep prepares the sums for a pace.
func newNaiveStep(l *layout, fixed *pins, c pace) *naiveStep {
	p := l.p
	t := &naiveStep{l: l, pins: fixed, devices: len(p.Topology.Devices), items: len(l.start) - 1, pace: c, train: p.Costs.Workload.Mode == costmodel.Train}
	t.passes, t.tokens = steptime.Passes(p.Costs)
	seconds, update := t.seconds()
	crossing := t.crossings()
	cuts := float64(t.devices + 2*len(l.tied) + 2)
	longest := slowest(seconds) + slowest(update) + cuts*largest(crossing)
	t.scale = math.Ldexp(1, tickBits-math.Ilogb(max(longest, math.SmallestNonzeroFloat32)))
	t.unit, t.update, t.cross = t.ticks(seconds), t.ticks(update), t.ticks(crossing)
	return t
}

func (t *naiveStep) seconds() (units, update [][]float64) {
	p := t.l.p
	for d := range t.devices {
		own, up := make([]float64, len(p.Costs.Units)), make([]float64, len(p.Costs.Units))
		for u := range own {
			s := steptime.Unit(p.Costs, p.Topology, d, u)
			own[u], up[u] = t.pace.weighted(t, u, s), s.Update
		}
		units, update = append(units, own), append(update, up)
	}
	return units, update
}

// sumOf is the step of a map: the sum at its own pace.
func (t *naiveStep) sumOf(place []int) float64 { return t.sumAt(t.paceOf(place), place) }

// sumAt is the sum of a map at a pace: a bound on its step.
func (t *naiveStep) sumAt(c pace, place []int) float64 {
	at := *t
	at.pace, at.size = c, nil
	units, update := at.seconds()
	cross := at.crossings()
	sum, slowest := 0., make([]float64, t.devices)
	for u, d := range place {
		sum += units[d][u]
		slowest[d] += update[d][u]
		if u > 0 {
			sum += cross[at.size[u-1]][place[u-1]*t.devices+d]
		}
	}
	return sum + slices.Max(slowest)
}

// crossings are the times of each distinct output between all devices, -1
// where they are not joined.
func (t *naiveStep) crossings() [][]float64 {
	p := t.l.p
	type kind struct {
		bytes       int64
		there, back float64
	}
	seen := map[kind]int{}
	var out [][]float64
	for u := range p.Costs.Units {
		k := kind{bytes: p.Costs.Units[u].Work.Output}
		k.there, k.back = t.pace.crossed(t, u)
		at, ok := seen[k]
		if !ok {
			at = len(out)
			seen[k] = at
			out = append(out, t.between(k.bytes, k.there, k.back))
		}
		t.size = append(t.size, at)
	}
	return out
}

func (t *naiveStep) between(bytes int64, there, back float64) []float64 {
	topo := t.l.p.Topology
	row := make([]float64, t.devices*t.devices)
	for from := range t.devices {
		for to := range t.devices {
			switch {
			case from == to:
			case !topo.Linked(from, to):
				row[from*t.devices+to] = -1
			default:
				row[from*t.devices+to] = there*topo.SendSeconds(from, to, bytes) + back*topo.SendSeconds(to, from, bytes)
			}
		}
	}
	return row
}

// crossing is what unit u's output costs on its way to the next unit's
// device; false where no link joins the two.
func (t *naiveStep) crossing(from, to, u int) (cost, bool) {
	if from == to {
		return cost{}, true
	}
	ticks := t.cross[t.size[u]][from*t.devices+to]
	return cost{ticks, t.l.p.Costs.Units[u].Work.Output, 1}, ticks >= 0
}
