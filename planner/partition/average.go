package partition

import (
	"math"
	"slices"
)

// A set of prices, one for a unit of each kind's time, turns a set of items
// into work: each item at the cheapest kind. What devices can do within a
// limit is their prices' sum times the limit, so work over prices is a lower
// bound on the largest load, whatever the prices. The best prices solve the
// dual of the linear program that lets items be shared out freely.
type prices struct {
	per  []float64 // +Inf: the kind is used up
	work []float64 // of each item
}

// average finds good prices for the devices of the kinds in use, and the
// bound they give: for like devices it is the sum of times over devices.
func (in *instance) average(use []bool) (prices, float64) {
	w := make([]float64, 0, len(use))
	var kinds []int
	for k, n := range in.p.Kinds {
		if use[k] && n.Count > 0 {
			kinds = append(kinds, k)
			w = append(w, 1)
		}
	}
	bound := func(w []float64) float64 { return sum(in.priced(kinds, w).work) }
	// The bound is concave in the weights: one pair at a time, a few rounds.
	for round := 0; round < 3 && len(kinds) > 1; round++ {
		for a := range w {
			b := (a + 1) % len(w)
			both := w[a] + w[b]
			lo, hi := 0.0, 1.0
			for range 60 {
				left, right := (2*lo+hi)/3, (lo+2*hi)/3
				w[a], w[b] = both*left, both*(1-left)
				low := bound(w)
				w[a], w[b] = both*right, both*(1-right)
				if low < bound(w) {
					lo = left
				} else {
					hi = right
				}
			}
			w[a], w[b] = both*(lo+hi)/2, both*(1-(lo+hi)/2)
		}
	}
	return in.priced(kinds, w), bound(w)
}

// priced are the prices at which the devices of a kind together cost its
// share of the weights.
func (in *instance) priced(kinds []int, weights []float64) prices {
	per := slices.Repeat([]float64{math.Inf(1)}, len(in.p.Kinds))
	for i, k := range kinds {
		per[k] = weights[i] / sum(weights) / float64(in.p.Kinds[k].Count)
	}
	work := make([]float64, len(in.nodes))
	for i := range work {
		work[i] = math.Inf(1)
		for _, k := range kinds {
			if t := in.time[k][i]; !math.IsInf(t, 1) {
				work[i] = min(work[i], per[k]*t)
			}
		}
	}
	return prices{per, work}
}

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
			if in.p.Kinds[k].Count > 0 && in.size[i] <= in.p.Kinds[k].Capacity {
				shortest = min(shortest, in.time[k][i])
			}
		}
		if i == 0 || shortest > time {
			item, time = i, shortest
		}
	}
	return item, time
}
