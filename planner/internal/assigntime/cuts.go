package assigntime

import (
	"math"
	"slices"
)

// cut is the least that crossings take where every stretch between two of
// them fits on some device: a shortest path over the places to cut.
func (bound *floor) cut() float64 {
	if bound.first == nil {
		return 0
	}
	count := len(bound.runs)
	cheapest := bound.cheapestOf(math.MaxUint)
	best := make([]float64, count+1) // of the units before
	for end := 1; end <= count; end++ {
		best[end] = math.Inf(1)
		for at := bound.first[end]; at < end; at++ {
			switch {
			case at == 0:
				best[end] = 0
			case bound.problem.ItemOf[at-1] != bound.problem.ItemOf[at]:
				best[end] = min(best[end], best[at]+cheapest[bound.size[at-1]])
			}
		}
	}
	return best[count]
}

// cheapestOf is what each kind of output takes at least between two devices
// of a set.
func (bound *floor) cheapestOf(set uint) []float64 {
	out := make([]float64, len(bound.cross))
	for kind, row := range bound.cross {
		out[kind] = math.Inf(1)
		for from := range bound.units {
			for to := range bound.units {
				if seconds := row[from*len(bound.units)+to]; from != to && seconds >= 0 && inSet(set, from) && inSet(set, to) {
					out[kind] = min(out[kind], seconds)
				}
			}
		}
	}
	return out
}

// crossings are the cheapest between k devices of a set: at least k−1 outputs go
// from one to another, in addition to those of the cuts.
func (bound *floor) crossings(set uint, k int) float64 {
	if k-1 > len(bound.sizes) {
		return math.Inf(1)
	}
	cheapest := bound.cheapestOf(set)
	costs := make([]float64, len(bound.sizes))
	for i, kind := range bound.sizes {
		costs[i] = cheapest[kind]
	}
	slices.Sort(costs)
	sum := 0.
	for i := range k - 1 {
		sum += costs[i]
	}
	return max(sum, bound.cuts)
}
