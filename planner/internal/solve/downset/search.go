package downset

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// search finds the best way through a lattice: stretches between down-sets,
// each on one device. It is the min-max dynamic program over down-sets of
// Tarnawski et al. (NeurIPS 2020), in order of size. Nothing is stored for
// pairs of down-sets: from each one that can be reached within the limit, the
// sets above are walked depth first, with the stretch's cost kept up to date,
// as far as one device can go within the limit.
type search struct {
	*stretch
	o      *order
	l      *lattice
	t      *states
	limit  float64 // on every load
	prices []graph.Prices
	choice []int       // the prices for what is left after a state
	left   []float64   // a state's devices that are left, in those prices
	paid   []float64   // and their capacity, in those prices
	space  []float64   // in bytes
	rest   [][]float64 // by prices: the work above a down-set
	weight []float64   // the size above a down-set
	seen   []int32     // the last set from which a set was walked to
	best   []float64
	live   []state
	open   []int // kinds of which a live state has one left
	from   int32
	steps  int
	most   int             // states
	ctx    context.Context //nolint:containedctx // one call's
	err    error
}

func newSearch(ctx context.Context, o *order, l *lattice, size []float64, most int) *search {
	s := &search{stretch: newStretch(o.Instance, size), o: o, l: l, most: most, ctx: ctx}
	s.t = newStates(o.Problem.Kinds, len(o.Nodes), l.len())
	s.best = make([]float64, s.t.count)
	s.seen = make([]int32, l.len())
	s.price()
	s.weight = s.above(size)
	return s
}

// price prepares the test whether what is above a down-set can still be done:
// with the kinds alone that a state has left, or, where the kinds are many,
// as if every kind were there, of which those that are used up have no more.
func (s *search) price() {
	kinds := s.o.Problem.Kinds
	index := make(map[int]int) // by the kinds left, as bits
	for _, used := range s.t.used {
		bits, room := 0, 0.0
		use := make([]bool, len(kinds))
		for k := range kinds {
			if n := kinds[k].Count - used[k]; n > 0 {
				bits |= 1 << k
				use[k] = true
				room += float64(n) * kinds[k].Room()
			}
		}
		priced := use
		if len(kinds) > fewKinds {
			bits, priced = 0, slices.Repeat([]bool{true}, len(kinds))
		}
		at, known := index[bits]
		if !known {
			at = len(s.prices)
			index[bits] = at
			w, _ := s.o.Average(priced, s.size)
			s.prices = append(s.prices, w)
			s.rest = append(s.rest, s.above(w.Work))
		}
		left, paid := 0.0, 0.0
		for k := range kinds {
			if use[k] {
				n := float64(kinds[k].Count - used[k])
				left += n * s.prices[at].PerTime[k]
				paid += n * s.prices[at].Space(&kinds[k], k)
			}
		}
		s.choice, s.space = append(s.choice, at), append(s.space, room)
		s.left, s.paid = append(s.left, left), append(s.paid, paid)
	}
}

// fewKinds bounds the sets of kinds that are priced, at 8 bytes a down-set.
const fewKinds = 3

// above sums a quantity over the items that a down-set lacks; +Inf where the
// full set cannot be reached from it.
func (s *search) above(of []float64) []float64 {
	sums := make([]float64, s.l.len())
	for i := len(sums) - 2; i >= 0; i-- {
		sums[i] = math.Inf(1)
		for e := s.l.first[i]; e < s.l.first[i+1]; e++ {
			sums[i] = min(sums[i], sums[s.l.next[e]]+of[s.l.item[e]])
		}
	}
	return sums
}

// hopeless: what is above a down-set is too much for the devices left.
func (s *search) hopeless(state int, set int32) bool {
	rest := s.rest[s.choice[state]][set]
	return rest*(1-graph.Rounding) > s.limit*s.left[state]+s.paid[state] || s.weight[set]*(1-graph.Rounding) > s.space[state]
}
