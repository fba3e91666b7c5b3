package assigntime

import (
	"math"
	"slices"
)

// cut returns the least seconds of crossings if every run between two cuts fits on some device. It
// is a shortest path over the cuts.
func (bound *floor) cut() float64 {
	if bound.first == nil {
		return 0
	}
	count := len(bound.runs)
	cheapest := bound.cheapestOf(math.MaxUint)
	best := make([]float64, count+1) // by the number of runs before
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

// cheapestOf returns the least seconds of each kind of output between two devices of a set.
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

// crossings returns the least seconds of crossings among k devices of a set. At least k−1 outputs
// cross, in addition to those of the cuts.
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
