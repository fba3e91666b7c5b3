package downset

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// search finds the best way through a lattice: runs between down-sets, each on one device. It is
// the min-max dynamic program over down-sets of Tarnawski et al. (NeurIPS 2020), in order of size.
// It stores nothing for pairs of down-sets. From each down-set reachable within the limit, it walks
// the larger sets depth first, as far as one device allows. It updates the run's cost on the way.
type search struct {
	*stretch
	ordered *order
	sets    *lattice
	table   *states
	limit   float64 // on every load
	prices  []graph.Prices
	choice  []int       // the prices for the items left after a state
	left    []float64   // the remaining devices of a state, in those prices
	paid    []float64   // their capacity, in those prices
	space   []float64   // their capacity, in bytes
	rest    [][]float64 // by prices: the work above a down-set
	weight  []float64   // the size above a down-set
	seen    []int32     // by set: the last set from which it was walked to
	best    []float64
	live    []state
	open    []int // kinds with devices left in some live state
	from    int32
	steps   int
	most    int             // limit on states
	ctx     context.Context //nolint:containedctx // one call's
	err     error
}

func newSearch(ctx context.Context, ordered *order, sets *lattice, size []float64, most int) *search {
	dp := &search{stretch: newStretch(ordered.Instance, size), ordered: ordered, sets: sets, most: most, ctx: ctx}
	dp.table = newStates(ordered.Problem.Kinds, len(ordered.Nodes), sets.len())
	dp.best = make([]float64, dp.table.count)
	dp.seen = make([]int32, sets.len())
	dp.price()
	dp.weight = dp.above(size)
	return dp
}

// price prepares the test whether the items above a down-set still fit on the kinds that a state
// has left. If there are many kinds, it counts all kinds, and used-up ones have no capacity.
func (dp *search) price() {
	kinds := dp.ordered.Problem.Kinds
	index := make(map[int]int) // by the kinds left, as bits
	for _, used := range dp.table.used {
		bits, capacity := 0, 0.0
		use := make([]bool, len(kinds))
		for kind := range kinds {
			if count := kinds[kind].Count - used[kind]; count > 0 {
				bits |= 1 << kind
				use[kind] = true
				capacity += float64(count) * kinds[kind].SizeLimit()
			}
		}
		priced := use
		if len(kinds) > fewKinds {
			bits, priced = 0, slices.Repeat([]bool{true}, len(kinds))
		}
		at, known := index[bits]
		if !known {
			at = len(dp.prices)
			index[bits] = at
			prices, _ := dp.ordered.Average(priced, dp.size)
			dp.prices = append(dp.prices, prices)
			dp.rest = append(dp.rest, dp.above(prices.Work))
		}
		left, paid := 0.0, 0.0
		for kind := range kinds {
			if use[kind] {
				amount := float64(kinds[kind].Count - used[kind])
				left += amount * dp.prices[at].PerTime[kind]
				paid += amount * dp.prices[at].Space(&kinds[kind], kind)
			}
		}
		dp.choice, dp.space = append(dp.choice, at), append(dp.space, capacity)
		dp.left, dp.paid = append(dp.left, left), append(dp.paid, paid)
	}
}

// fewKinds is the most sets of kinds with own prices, at 8 bytes a down-set.
const fewKinds = 3

// above sums a quantity over the items that a down-set lacks; +Inf if it does not lead to the full
// set.
func (dp *search) above(of []float64) []float64 {
	sums := make([]float64, dp.sets.len())
	for i := len(sums) - 2; i >= 0; i-- {
		sums[i] = math.Inf(1)
		for edge := dp.sets.first[i]; edge < dp.sets.first[i+1]; edge++ {
			sums[i] = min(sums[i], sums[dp.sets.next[edge]]+of[dp.sets.item[edge]])
		}
	}
	return sums
}

// hopeless reports that the items above a down-set are too much for the devices left.
func (dp *search) hopeless(state int, set int32) bool {
	rest := dp.rest[dp.choice[state]][set]
	return rest*(1-graph.Rounding) > dp.limit*dp.left[state]+dp.paid[state] || dp.weight[set]*(1-graph.Rounding) > dp.space[state]
}
