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
	ordered *order
	sets    *lattice
	table   *states
	limit   float64 // on every load
	prices  []graph.Prices
	choice  []int       // the prices for what is left after a state
	left    []float64   // a state's devices that are left, in those prices
	paid    []float64   // and their capacity, in those prices
	space   []float64   // in bytes
	rest    [][]float64 // by prices: the work above a down-set
	weight  []float64   // the size above a down-set
	seen    []int32     // the last set from which a set was walked to
	best    []float64
	live    []state
	open    []int // kinds that some live state has left
	from    int32
	steps   int
	most    int             // states
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

// price prepares the test whether the items above a down-set can still be placed:
// with only the kinds that a state has left. If the kinds are many, it counts all
// kinds, and those that are used up have no capacity.
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

// fewKinds bounds the sets of kinds that are priced, at 8 bytes a down-set.
const fewKinds = 3

// above sums a quantity over the items that a down-set lacks; +Inf where the
// full set cannot be reached from it.
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

// hopeless: what is above a down-set is too much for the devices left.
func (dp *search) hopeless(state int, set int32) bool {
	rest := dp.rest[dp.choice[state]][set]
	return rest*(1-graph.Rounding) > dp.limit*dp.left[state]+dp.paid[state] || dp.weight[set]*(1-graph.Rounding) > dp.space[state]
}
