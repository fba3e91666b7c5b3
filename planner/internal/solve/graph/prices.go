package graph

import (
	"cmp"
	"math"
	"slices"
)

// ByAverage is the argument of [Instance.Average].
const ByAverage = "average: all times over all devices, within the capacities of each kind together"

// Prices convert a set of items to work, each item at its cheapest kind. PerTime prices a unit of
// each kind's time, and PerByte a byte of its capacity. Within a limit, devices can do work of at
// most the price of their time times the limit, plus the price of their capacity. So work minus the
// price of all capacity, divided by the price of all time, is a lower bound on the largest load for
// any prices. The best prices solve the dual of a linear program: items may be split, and
// capacities are summed over the devices of a kind.
type Prices struct {
	PerTime []float64 // +Inf: all devices of the kind are used
	PerByte []float64 // 0 except for one kind: see pricedBytes
	Work    []float64 // of each item
	// bound is the lower bound for all devices of the selected kinds.
	bound float64
}

// Average returns good prices for the devices of the selected kinds, and their bound. For equal
// devices the bound is the sum of times divided by the devices. Sizes may be smaller than the
// items' own.
func (in *Instance) Average(use []bool, sizes []float64) (Prices, float64) {
	weights := make([]float64, 0, len(use))
	var kinds []int
	for k, kind := range in.Problem.Kinds {
		if use[k] && kind.Count > 0 {
			kinds = append(kinds, k)
			weights = append(weights, 1)
		}
	}
	// The bound is concave in the weights, so one pair at a time is improved in a few rounds. Two
	// kinds are one pair.
	pairs := 3 * len(weights)
	if len(weights) <= 2 {
		pairs = len(weights) - 1
	}
	for pair := range pairs {
		a := pair % len(weights)
		b := (a + 1) % len(weights)
		both := weights[a] + weights[b]
		at := func(share float64) float64 {
			weights[a], weights[b] = both*share, both*(1-share)
			return in.priced(kinds, weights, sizes).bound
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
	best := in.priced(kinds, weights, sizes)
	return best, best.bound
}

// priced returns prices at which the devices of a kind together cost its share of the weights. The
// price of a byte is the one with the highest bound.
func (in *Instance) priced(kinds []int, weights, sizes []float64) Prices {
	per := make([]float64, len(in.Problem.Kinds))
	for kind := range per {
		per[kind] = math.Inf(1)
	}
	for i, kind := range kinds {
		per[kind] = weights[i] / Sum(weights) / float64(in.Problem.Kinds[kind].Count)
	}
	best := in.pricedBytes(per, -1, sizes)
	size := Sum(sizes)
	for _, kind := range kinds {
		if in.Problem.Kinds[kind].capacity() < size {
			if prices := in.pricedBytes(per, kind, sizes); prices.bound > best.bound {
				best = prices
			}
		}
	}
	return best
}

// Space returns the price of a device's capacity; it may be infinite for a kind with free bytes.
func (prices *Prices) Space(kind *Kind, k int) float64 {
	if prices.PerByte[k] == 0 {
		return 0
	}
	return prices.PerByte[k] * kind.SizeLimit()
}

// capacity returns the capacity of all devices of a kind.
func (kind *Kind) capacity() float64 { return float64(kind.Count) * kind.SizeLimit() }

// Sum adds values in their order.
func Sum(values []float64) float64 {
	total := 0.0
	for _, value := range values {
		total += value
	}
	return total
}

// LargestItem returns the item with the longest shortest time, and that time.
func (in *Instance) LargestItem() (item int, time float64) {
	for i := range in.Nodes {
		shortest := math.Inf(1)
		for kind := range in.Problem.Kinds {
			if in.Problem.Kinds[kind].Count > 0 && in.Size[i] <= in.Problem.Kinds[kind].SizeLimit() {
				shortest = min(shortest, in.Time[kind][i])
			}
		}
		if i == 0 || shortest > time {
			item, time = i, shortest
		}
	}
	return item, time
}

// pricedBytes sets the price of a byte on one kind (−1: on none) so that the bound is highest for
// these prices of time. As the price rises, items move from that kind to the next cheapest, those
// that lose least per byte first. The bound is highest when the remaining items just fit: the
// fractional knapsack (Dantzig, Operations Research 5, 1957).
func (in *Instance) pricedBytes(per []float64, kind int, sizes []float64) Prices {
	prices := Prices{PerTime: per, PerByte: make([]float64, len(per)), Work: make([]float64, len(in.Nodes))}
	here, elsewhere := make([]float64, len(in.Nodes)), prices.Work
	for i := range elsewhere {
		here[i], elsewhere[i] = math.Inf(1), math.Inf(1)
		for k, price := range per {
			time := in.Time[k][i]
			switch {
			case math.IsInf(price, 1) || math.IsInf(time, 1):
			case k == kind:
				here[i] = price * time
			default:
				elsewhere[i] = min(elsewhere[i], price*time)
			}
		}
	}
	if kind >= 0 {
		prices.PerByte[kind] = bytePrice(in.Problem.Kinds[kind].capacity(), sizes, here, elsewhere)
		for i := range prices.Work {
			prices.Work[i] = min(elsewhere[i], here[i]+prices.PerByte[kind]*sizes[i])
		}
		prices.bound = -prices.PerByte[kind] * in.Problem.Kinds[kind].capacity()
	}
	prices.bound += Sum(prices.Work) * (1 - 1e-12) // the difference of sums may be small
	return prices
}

// bytePrice returns the least price at which the items that remain on a kind fit together; 0 if the
// items that cannot move do not fit.
func bytePrice(capacity float64, sizes, here, elsewhere []float64) float64 {
	size := 0.0
	var items []int
	for i := range here {
		if sizes[i] > 0 && here[i] < elsewhere[i] {
			size += sizes[i]
			items = append(items, i)
		}
	}
	loss := func(i int) float64 { return (elsewhere[i] - here[i]) / sizes[i] }
	slices.SortFunc(items, func(a, b int) int { return cmp.Compare(loss(a), loss(b)) })
	price := 0.0
	for _, i := range items {
		if size <= capacity || math.IsInf(loss(i), 1) {
			break
		}
		price = loss(i)
		size -= sizes[i]
	}
	return price
}
