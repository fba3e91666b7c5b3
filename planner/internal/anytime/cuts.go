package anytime

import (
	"math"
	"slices"
)

// cut is the least that crossings take where every stretch between two of
// them fits on some device: a shortest path over the places to cut.
func (f *floor) cut() float64 {
	if f.first == nil {
		return 0
	}
	n := len(f.runs)
	cheapest := f.cheapestOf(math.MaxUint)
	best := make([]float64, n+1) // of the units before
	for end := 1; end <= n; end++ {
		best[end] = math.Inf(1)
		for at := f.first[end]; at < end; at++ {
			switch {
			case at == 0:
				best[end] = 0
			case f.problem.ItemOf[at-1] != f.problem.ItemOf[at]:
				best[end] = min(best[end], best[at]+cheapest[f.size[at-1]])
			}
		}
	}
	return best[n]
}

// cheapestOf is what each kind of output takes at least between two devices
// of a set.
func (f *floor) cheapestOf(set uint) []float64 {
	out := make([]float64, len(f.cross))
	for kind, row := range f.cross {
		out[kind] = math.Inf(1)
		for from := range f.units {
			for to := range f.units {
				if s := row[from*len(f.units)+to]; from != to && s >= 0 && in(set, from) && in(set, to) {
					out[kind] = min(out[kind], s)
				}
			}
		}
	}
	return out
}

// crossings are the cheapest between k devices of a set, of which k−1 outputs
// at least go from one to another, and those of the cuts.
func (f *floor) crossings(set uint, k int) float64 {
	if k-1 > len(f.sizes) {
		return math.Inf(1)
	}
	cheapest := f.cheapestOf(set)
	costs := make([]float64, len(f.sizes))
	for i, kind := range f.sizes {
		costs[i] = cheapest[kind]
	}
	slices.Sort(costs)
	sum := 0.
	for i := range k - 1 {
		sum += costs[i]
	}
	return max(sum, f.cuts)
}
