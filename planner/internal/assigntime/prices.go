package assigntime

import (
	"cmp"
	"math"
	"slices"
)

// speeds is a set of devices with the same time for every item.
type speeds struct {
	device   int
	capacity int64
	price    float64 // seconds per byte
}

// packed returns the least sum of the units' parts if a moment's bytes fit into the capacities of a
// set, with items cut if that helps. It is the Lagrangian dual of the transport problem, by
// coordinate ascent over the prices of memory. For two speeds it fills the fast devices by seconds
// gained per byte (Dantzig's bound of the knapsack problem). Any prices give a bound.
func (bound *floor) packed(moment int, set uint) float64 {
	weight := bound.weight[moment]
	pinned, items := 0., []int{}
	rooms := slices.Clone(bound.byDevice[moment])
	for i := range bound.problem.Items {
		if pin := bound.problem.Items[i].Device; pin >= 0 {
			pinned += bound.work[i][pin]
			rooms[pin] -= weight[i]
			continue
		}
		items = append(items, i)
	}
	var kinds []speeds
	for device, free := range rooms {
		if !inSet(set, device) {
			continue
		}
		if free < 0 {
			return math.Inf(1)
		}
		at := slices.IndexFunc(kinds, func(rates speeds) bool {
			return !slices.ContainsFunc(items, func(i int) bool { return bound.work[i][device] != bound.work[i][rates.device] })
		})
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, speeds{device: device})
		}
		kinds[at].capacity += free
	}
	most := 0.
	for range 3 {
		for k := range kinds {
			if !bound.price(kinds, k, items, weight) {
				return math.Inf(1)
			}
			most = max(most, bound.dual(kinds, items, weight))
		}
	}
	return pinned + most
}

// dual returns the bound for the given prices.
func (bound *floor) dual(kinds []speeds, items []int, weight []int64) float64 {
	sum := 0.
	for _, i := range items {
		sum += bound.cheapest(kinds, -1, i, weight)
	}
	for _, kind := range kinds {
		sum -= kind.price * float64(kind.capacity)
	}
	return sum
}

// cheapest returns an item's least time plus price over all kinds but one.
func (bound *floor) cheapest(kinds []speeds, but, i int, weight []int64) float64 {
	least := math.Inf(1)
	for k := range kinds {
		if k != but {
			least = min(least, bound.work[i][kinds[k].device]+kinds[k].price*float64(weight[i]))
		}
	}
	return least
}

// price sets the best price of one kind's capacity. That is the price at which the items with the
// largest gain per byte fill it. It returns false if the items that fit on no other kind are too
// many.
func (bound *floor) price(kinds []speeds, at int, items []int, weight []int64) bool {
	type gain struct {
		price float64
		bytes int64
	}
	var gains []gain
	for _, i := range items {
		own := bound.work[i][kinds[at].device]
		if weight[i] <= 0 || math.IsInf(own, 1) {
			continue
		}
		if by := (bound.cheapest(kinds, at, i, weight) - own) / float64(weight[i]); by > 0 {
			gains = append(gains, gain{by, weight[i]})
		}
	}
	slices.SortFunc(gains, func(a, b gain) int { return cmp.Compare(b.price, a.price) })
	kinds[at].price = 0
	left := kinds[at].capacity
	for _, item := range gains {
		if left -= item.bytes; left < 0 {
			if math.IsInf(item.price, 1) {
				return false
			}
			kinds[at].price = item.price
			return true
		}
	}
	return true
}
