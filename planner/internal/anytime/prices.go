package anytime

import (
	"cmp"
	"math"
	"slices"
)

// speeds are devices on which every item takes the same time, as one.
type speeds struct {
	device int
	room   int64
	price  float64 // seconds a byte
}

// packed is the least sum of the units' parts where a moment's bytes fit into
// the rooms of a set, items cut where that helps: the Lagrangian dual of the
// transport problem, by coordinate ascent over the prices of rooms. With two
// speeds it is the greedy fill of the fast devices by seconds gained a byte
// (Dantzig's bound of the knapsack problem); any prices give a bound.
func (f *floor) packed(moment int, set uint) float64 {
	weight := f.weight[moment]
	pinned, items := 0., []int{}
	rooms := slices.Clone(f.byDevice[moment])
	for i := range f.problem.Items {
		if pin := f.problem.Items[i].Device; pin >= 0 {
			pinned += f.work[i][pin]
			rooms[pin] -= weight[i]
			continue
		}
		items = append(items, i)
	}
	var kinds []speeds
	for d, room := range rooms {
		if !in(set, d) {
			continue
		}
		if room < 0 {
			return math.Inf(1)
		}
		at := slices.IndexFunc(kinds, func(k speeds) bool {
			return !slices.ContainsFunc(items, func(i int) bool { return f.work[i][d] != f.work[i][k.device] })
		})
		if at < 0 {
			at = len(kinds)
			kinds = append(kinds, speeds{device: d})
		}
		kinds[at].room += room
	}
	most := 0.
	for range 3 {
		for k := range kinds {
			if !f.price(kinds, k, items, weight) {
				return math.Inf(1)
			}
			most = max(most, f.dual(kinds, items, weight))
		}
	}
	return pinned + most
}

// dual is the bound that prices give.
func (f *floor) dual(kinds []speeds, items []int, weight []int64) float64 {
	sum := 0.
	for _, i := range items {
		sum += f.cheapest(kinds, -1, i, weight)
	}
	for _, k := range kinds {
		sum -= k.price * float64(k.room)
	}
	return sum
}

// cheapest is an item's time and price on the best kind but one.
func (f *floor) cheapest(kinds []speeds, but, i int, weight []int64) float64 {
	least := math.Inf(1)
	for k := range kinds {
		if k != but {
			least = min(least, f.work[i][kinds[k].device]+kinds[k].price*float64(weight[i]))
		}
	}
	return least
}

// price sets the best price of one kind's room, the others as they are: that
// at which the items that gain most a byte fill it. False where the items that
// fit on no other kind are too many.
func (f *floor) price(kinds []speeds, at int, items []int, weight []int64) bool {
	type gain struct {
		price float64
		bytes int64
	}
	var gains []gain
	for _, i := range items {
		own := f.work[i][kinds[at].device]
		if weight[i] <= 0 || math.IsInf(own, 1) {
			continue
		}
		if by := (f.cheapest(kinds, at, i, weight) - own) / float64(weight[i]); by > 0 {
			gains = append(gains, gain{by, weight[i]})
		}
	}
	slices.SortFunc(gains, func(a, b gain) int { return cmp.Compare(b.price, a.price) })
	kinds[at].price = 0
	room := kinds[at].room
	for _, g := range gains {
		if room -= g.bytes; room < 0 {
			if math.IsInf(g.price, 1) {
				return false
			}
			kinds[at].price = g.price
			return true
		}
	}
	return true
}
