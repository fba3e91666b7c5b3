package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
)

// anneal makes a run from the annealer's start. The power and the unit change
// from run to run: which suits a problem is not known before.
func (call *anywhere) anneal(ctx context.Context, anneal *annealer, split *splitter, run int) {
	anneal.squarings = 2 + run%3
	if anneal.unit = call.Answer.LowerBound * 1.05; anneal.unit <= 0 {
		anneal.unit = 1
	}
	if call.best != nil && run%2 == 1 {
		anneal.unit = call.Answer.Value
	}
	heat := [...][2]float64{{3, 0.001}, {1, 0.02}, {10, 0.1}}[run/3%3]
	anneal.run(ctx, call.steps, heat[0], heat[1])
	call.polish(ctx, anneal, split, "simulated annealing")
}

// polish splits pairs of the annealer's best answer anew, and takes it.
func (call *anywhere) polish(ctx context.Context, anneal *annealer, split *splitter, method string) {
	if anneal.found() {
		anneal.refresh(anneal.best)
	}
	split.polish(ctx, anneal)
	if anneal.found() {
		call.take(anneal.best, anneal.bestLoad, method+", and pairs of devices divided anew: any assignment is allowed, too many to try all")
	}
}

// chain starts from what contiguous parts can do.
func (call *anywhere) chain(ctx context.Context, anneal *annealer, split *splitter) {
	if call.best == nil {
		return
	}
	anneal.unit = call.Answer.Value
	anneal.refresh(call.best)
	anneal.note()
	call.polish(ctx, anneal, split, call.Answer.Method)
}

// kick shakes an answer a little, lets it settle, and goes on from there if it
// is nearly as good (iterated local search).
func (call *anywhere) kick(ctx context.Context, anneal *annealer, split *splitter) {
	at, load := append([]int32(nil), call.best...), call.Answer.Value
	stop, steps := split.Work+kickWork, kickSteps*min(len(call.Nodes), maxItems)
	for range kicks {
		if call.over(ctx) || split.Work > stop {
			return
		}
		anneal.unit = load
		anneal.squarings = 2 + anneal.rng.IntN(4)
		hot := [...]float64{0.02, 0.2}[anneal.rng.IntN(2)]
		copy(anneal.place, at)
		anneal.refresh(anneal.place)
		for range steps / 4 {
			anneal.step(hot)
		}
		anneal.forget()
		anneal.run(ctx, steps, hot, 0.001)
		call.polish(ctx, anneal, split, "iterated local search")
		if anneal.found() && anneal.bestLoad <= load*(1+0.002*anneal.rng.Float64()) {
			load = anneal.bestLoad
			copy(at, anneal.best)
		}
	}
}

// scatter puts each item on a random device of the kind that is best for it.
func (call *anywhere) scatter(rng *rand.Rand) []int32 {
	place := make([]int32, len(call.Nodes))
	for item := range place {
		kind := -1
		for k, count := range call.Count {
			if count > 0 && call.Size[item] <= call.Capacity[k] && (kind < 0 || call.Time[k][item] < call.Time[kind][item]) {
				kind = k
			}
		}
		place[item] = int32(call.First[kind] + rng.IntN(call.Count[kind]))
	}
	return place
}

// onePass goes through the items once, so that there is an answer however soon
// the end comes: an item joins the one before unless that device then has more
// than the average, or cannot take it; then it goes where the least is.
func (call *anywhere) onePass(average float64) {
	kind := call.KindOf()
	load, bytes := make([]float64, len(kind)), make([]float64, len(kind))
	place := make([]int32, len(call.Nodes))
	at := 0
	for item := range place {
		can := func(device int) bool {
			return !math.IsInf(call.Time[kind[device]][item], 1) && bytes[device]+call.Size[item] <= call.Capacity[kind[device]]
		}
		if !can(at) || load[at]+call.Time[kind[at]][item] > average {
			least := -1
			for device := range kind {
				if can(device) && (least < 0 || load[device]+call.Time[kind[device]][item] < load[least]+call.Time[kind[least]][item]) {
					least = device
				}
			}
			if least < 0 {
				return
			}
			at = least
		}
		place[item] = int32(at)
		load[at] += call.Time[kind[at]][item]
		bytes[at] += call.Size[item]
	}
	call.take(place, 0, "one pass: each item where the one before is, or where the least is")
}
