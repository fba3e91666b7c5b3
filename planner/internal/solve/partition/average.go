package partition

import (
	"math"
)

const byAverage = "average: all times over all devices, within the capacities of each kind together"

// A set of prices, one for a unit of each kind's time and one for a byte of
// its capacity, turns a set of items into work: each item at the cheapest kind.
// What devices can do within a limit is their time's price times the limit and
// their capacity's price, so work less what all capacity costs, over what all
// time costs, is a lower bound on the largest load, whatever the prices. The
// best prices solve the dual of the linear program that lets items be shared
// out freely, with capacities summed over the devices of a kind.
type prices struct {
	per  []float64 // +Inf: the kind is used up
	rent []float64 // 0 but for one kind: see rents
	work []float64 // of each item
	// bound is the lower bound for all devices of the kinds in use.
	bound float64
}

// average finds good prices for the devices of the kinds in use, and the
// bound they give: for like devices it is the sum of times over devices. Sizes
// may be less than the items' own.
func (in *instance) average(use []bool, sizes []float64) (prices, float64) {
	w := make([]float64, 0, len(use))
	var kinds []int
	for k, n := range in.p.Kinds {
		if use[k] && n.Count > 0 {
			kinds = append(kinds, k)
			w = append(w, 1)
		}
	}
	// The bound is concave in the weights: one pair at a time, a few rounds.
	// Two kinds are one pair.
	pairs := 3 * len(w)
	if len(w) <= 2 {
		pairs = len(w) - 1
	}
	for pair := range pairs {
		a := pair % len(w)
		b := (a + 1) % len(w)
		both := w[a] + w[b]
		at := func(share float64) float64 {
			w[a], w[b] = both*share, both*(1-share)
			return in.priced(kinds, w, sizes).bound
		}
		lo, hi := 0.0, 1.0
		for range 50 {
			left, right := (2*lo+hi)/3, (lo+2*hi)/3
			if at(left) < at(right) {
				lo = left
			} else {
				hi = right
			}
		}
		at((lo + hi) / 2)
	}
	best := in.priced(kinds, w, sizes)
	return best, best.bound
}

// priced are the prices at which the devices of a kind together cost its
// share of the weights, with the rent that proves most.
func (in *instance) priced(kinds []int, weights, sizes []float64) prices {
	per := make([]float64, len(in.p.Kinds))
	for k := range per {
		per[k] = math.Inf(1)
	}
	for i, k := range kinds {
		per[k] = weights[i] / sum(weights) / float64(in.p.Kinds[k].Count)
	}
	best := in.rented(per, -1, sizes)
	size := sum(sizes)
	for _, k := range kinds {
		if in.p.Kinds[k].capacity() < size {
			if p := in.rented(per, k, sizes); p.bound > best.bound {
				best = p
			}
		}
	}
	return best
}

// space is what a device's capacity costs; it may be infinite where it is free.
func (p *prices) space(kind *Kind, k int) float64 {
	if p.rent[k] == 0 {
		return 0
	}
	return p.rent[k] * kind.room()
}

// capacity is that of a kind's devices together.
func (k *Kind) capacity() float64 { return float64(k.Count) * k.room() }

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// largestItem is the longest of the items' shortest times.
func (in *instance) largestItem() (item int, time float64) {
	for i := range in.nodes {
		shortest := math.Inf(1)
		for k := range in.p.Kinds {
			if in.p.Kinds[k].Count > 0 && in.size[i] <= in.p.Kinds[k].room() {
				shortest = min(shortest, in.time[k][i])
			}
		}
		if i == 0 || shortest > time {
			item, time = i, shortest
		}
	}
	return item, time
}
