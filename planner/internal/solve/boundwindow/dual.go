package boundwindow

import (
	"context"
	"math"
	"slices"
)

// dual holds the multipliers, and what they prove within a limit.
//
// Let weight[j] be that of stage j's load, all of them summing to the number of
// stages, and rent[j] ≥ 0 a price on its bytes, which are within the room. The
// largest load times the number of stages is at least
//
//	Σ_j weight[j]·load[j] + Σ_j rent[j]·(bytes[j] − room).
//
// A wire whose members lie in stages a to b > a is paid in both of these at
// least: cost·(weight[a] + weight[b]), of which the least is taken over the
// stages that its first and its last member may have. The wire's shares say how
// much of that a boundary pays if the wire crosses it; they sum to 1 over the
// boundaries that it may cross. All the rest is the items' own costs. The sum of
// the boundaries' least costs is then a bound, and each is a minimum cut.
type dual struct {
	*form
	windows
	multipliers
	limit float64
	cuts  []*cut
	// tail and head are the stages that a wire's first and last member may
	// have, worth what it costs at the weights at hand.
	tail, head [][2]int
	worth      []float64
	unit       float64 // of the costs in whole numbers
	small      float64 // what an item without time counts, when work is divided
	// slope is the subgradient at the latest answer, way that of the latest
	// few.
	slope, way, best multipliers
	// bound is the best so far, lead how far above it steps aim.
	bound, lead float64
}

// multipliers are those of a dual, or a direction in their space: the rent in
// the problem's units, the shares by wire, from its first boundary on.
type multipliers struct {
	weight, rent []float64
	share        [][]float64
}

func newMultipliers(stages int, share [][]float64) multipliers {
	out := multipliers{weight: make([]float64, stages), rent: make([]float64, stages)}
	for _, of := range share {
		out.share = append(out.share, make([]float64, len(of)))
	}
	return out
}

func (to *multipliers) take(from *multipliers) {
	copy(to.weight, from.weight)
	copy(to.rent, from.rent)
	for wire := range to.share {
		copy(to.share[wire], from.share[wire])
	}
}

func newDual(form *form, within windows, limit float64) *dual {
	out := &dual{form: form, windows: within, limit: limit, lead: 0.05}
	total := 0.0
	for _, time := range form.time {
		total += time
	}
	var shares [][]float64
	for _, wire := range form.wires {
		tail, head := [2]int{math.MaxInt, math.MaxInt}, [2]int{}
		for _, item := range wire.Members {
			tail = [2]int{min(tail[0], within.first[item]), min(tail[1], within.last[item])}
			head = [2]int{max(head[0], within.first[item]), max(head[1], within.last[item])}
		}
		shares = append(shares, make([]float64, head[1]-tail[0]))
		out.tail, out.head = append(out.tail, tail), append(out.head, head)
		total += 2 * wire.Cost
	}
	out.worth = make([]float64, len(form.wires))
	out.multipliers = newMultipliers(form.stages, shares)
	out.slope, out.way, out.best = newMultipliers(form.stages, shares), newMultipliers(form.stages, shares), newMultipliers(form.stages, shares)
	for _, share := range out.share {
		for i := range share {
			share[i] = 1 / float64(len(share))
		}
	}
	for stage := range out.weight {
		out.weight[stage] = 1
	}
	out.best.take(&out.multipliers)
	out.unit, out.small = total/(1<<44), total/float64(100*len(form.time))
	for stage := range form.stages - 1 {
		out.cuts = append(out.cuts, form.newCut(stage, &out.windows))
	}
	return out
}

// whole rounds a cost down, so that sums of costs are never too high.
func (dual *dual) whole(cost float64) int64 { return int64(math.Floor(cost / dual.unit)) }

// costs are an item's before a boundary, and a wire's that crosses it.
func (dual *dual) costs(boundary int) (item, wire func(int32) int64) {
	ofTime, ofSize := dual.weight[boundary]-dual.weight[boundary+1], dual.rent[boundary]-dual.rent[boundary+1]
	item = func(item int32) int64 { return dual.whole(ofTime*dual.time[item] + ofSize*dual.size[item]) }
	wire = func(wire int32) int64 {
		return dual.whole(dual.worth[wire] * dual.share[wire][boundary-dual.tail[wire][0]])
	}
	return item, wire
}

// evaluate finds the bound at the multipliers at hand, and the slopes; −Inf where
// the context ends.
func (dual *dual) evaluate(ctx context.Context) float64 {
	clear(dual.slope.weight)
	clear(dual.slope.rent)
	for wire, share := range dual.slope.share {
		clear(share)
		dual.worth[wire] = dual.wires[wire].Cost * (least(dual.weight, dual.tail[wire]) + least(dual.weight, dual.head[wire]))
	}
	last := dual.stages - 1
	total, constant := int64(0), 0.0
	for item, time := range dual.time {
		constant += dual.weight[last]*time + dual.rent[last]*dual.size[item]
		dual.slope.weight[last] += time
		dual.slope.rent[last] += dual.size[item]
	}
	for stage, rent := range dual.rent {
		if rent > 0 {
			constant -= rent * dual.room
		}
		dual.slope.rent[stage] -= dual.room
	}
	for boundary, cut := range dual.cuts {
		if ctx.Err() != nil {
			return math.Inf(-1)
		}
		total += cut.least(dual.costs(boundary))
		dual.lean(boundary, cut)
	}
	return (float64(total)*dual.unit + constant) / float64(dual.stages)
}

// least is the least of the weights of some stages.
func least(weight []float64, stages [2]int) float64 {
	return slices.Min(weight[stages[0] : stages[1]+1])
}

// lean adds a boundary's answer to the slopes.
func (dual *dual) lean(boundary int, cut *cut) {
	for item := range dual.time {
		if cut.before(item) {
			dual.slope.weight[boundary] += dual.time[item]
			dual.slope.weight[boundary+1] -= dual.time[item]
			dual.slope.rent[boundary] += dual.size[item]
			dual.slope.rent[boundary+1] -= dual.size[item]
		}
	}
	for _, wire := range cut.always {
		dual.cross(wire, boundary)
	}
	for i, wire := range cut.wires {
		if cut.crosses[i] {
			dual.cross(wire, boundary)
		}
	}
}

// cross adds a wire that crosses a boundary. Where several stages have about the
// least weight, each is leaned on a little.
func (dual *dual) cross(wire int32, boundary int) {
	at := boundary - dual.tail[wire][0]
	dual.slope.share[wire][at] = 1
	part := dual.wires[wire].Cost * dual.share[wire][at]
	for _, stages := range [2][2]int{dual.tail[wire], dual.head[wire]} {
		low, near := least(dual.weight, stages)+nearly, 0.0
		for stage := stages[0]; stage <= stages[1]; stage++ {
			if dual.weight[stage] <= low {
				near++
			}
		}
		for stage := stages[0]; stage <= stages[1]; stage++ {
			if dual.weight[stage] <= low {
				dual.slope.weight[stage] += part / near
			}
		}
	}
}

// nearly is how far apart two weights are that are about the same.
const nearly = 0.02
