package assign

import (
	"math/big"
	"slices"
	"sort"
)

// The arguments for a lower bound.
const (
	byAverage = "average"
	byLargest = "largest item"
	byCount   = "how many of the largest items fit on a device"
	byCrowd   = "devices with more items than most"
	byHalves  = "items above half of a device"
	bySums    = "subset sums"
	byProgram = "linear program over sets of items"
	bySearch  = "search"
	byFixed   = "fixed load"
)

// average is the share that even loads would have, and not below any fixed
// load or the largest item where it does least.
func (it *itemTable) average() (*big.Rat, string) {
	low, why := new(big.Rat), byAverage
	raise := func(to *big.Rat, because string) {
		if to.Cmp(low) > 0 {
			low, why = to, because
		}
	}
	for device, budget := range it.problem.Budgets {
		raise(big.NewRat(it.fixed(device), budget), byFixed)
	}
	// Devices that are above the level already take nothing: leave them out.
	level := func(device int) *big.Rat { return big.NewRat(it.fixed(device), it.problem.Budgets[device]) }
	order := make([]int, len(it.problem.Budgets))
	for device := range order {
		order[device] = device
	}
	slices.SortStableFunc(order, func(a, b int) int { return level(a).Cmp(level(b)) })
	load, budget := big.NewInt(it.total), new(big.Int)
	load.Mul(load, big.NewInt(it.unit))
	var even *big.Rat
	for _, device := range order {
		if even != nil && level(device).Cmp(even) >= 0 {
			break
		}
		load.Add(load, big.NewInt(it.fixed(device)))
		budget.Add(budget, big.NewInt(it.problem.Budgets[device]))
		even = new(big.Rat).SetFrac(load, budget)
	}
	raise(even, byAverage)
	if len(it.weight) > 0 {
		var alone *big.Rat
		for device, budget := range it.problem.Budgets {
			alone = lower(alone, big.NewRat(it.fixed(device)+it.weight[0]*it.unit, budget))
		}
		raise(alone, byLargest)
	}
	return low, why
}

// refute says by which argument nothing fits under caps; "": by none here.
func (it *itemTable) refute(caps []int64) string {
	room, most := int64(0), int64(-1)
	for _, capacity := range caps {
		if capacity < 0 {
			return byFixed
		}
		room, most = room+min(capacity, it.total), max(most, capacity)
	}
	switch {
	case room < it.total:
		return byAverage
	case len(it.weight) > 0 && most < it.weight[0]:
		return byLargest
	case it.tooMany(caps):
		return byCount
	case slices.Min(caps) == most && it.crowded(most, len(caps)):
		return byCrowd
	case slices.Min(caps) == most && it.halves(most, len(caps)):
		return byHalves
	case it.unreached(caps):
		return bySums
	}
	return ""
}

// crowded takes, for each n, the n largest items, which are more than q for each
// of the devices: some of them hold more than q. If b do, these hold q+1 each at
// least, and together what is left of n when every other one has q. Where the
// smallest so many are too much for b devices, whatever b is, they do not fit.
func (it *itemTable) crowded(capacity int64, devices int) bool {
	sums := it.sums()
	for count := 1; count <= len(it.weight); count++ {
		each := count / devices
		refuted := each*devices < count
		for crowd := 1; refuted && crowd*(each+1) <= count && crowd <= devices; crowd++ {
			least := max(count-each*(devices-crowd), crowd*(each+1))
			refuted = sums[count]-sums[count-least] > int64(crowd)*capacity
		}
		if refuted {
			return true
		}
	}
	return false
}

// sums are those of the largest items, of none at first.
func (it *itemTable) sums() []int64 {
	sums := make([]int64, len(it.weight)+1)
	for i, weight := range it.weight {
		sums[i+1] = sums[i] + weight
	}
	return sums
}

// tooMany counts, for each n, how many of the n largest items fit on the
// devices, which is at most what fits of the smallest of them (for n = jk+1 the
// bound of Dell'Amico and Martello, §2: the j+1 smallest share a device).
func (it *itemTable) tooMany(caps []int64) bool {
	sums := it.sums()
	for count := 1; count <= len(it.weight); count++ {
		fit, last, of := 0, int64(-1), 0
		for _, capacity := range caps {
			if capacity != last {
				last, of = capacity, count-sort.Search(count, func(i int) bool { return sums[count]-sums[i] <= capacity })
			}
			if fit += of; fit >= count {
				break
			}
		}
		if fit < count {
			return true
		}
	}
	return false
}

// unreached lowers each device's room to the largest subset sum of the items.
func (it *itemTable) unreached(caps []int64) bool {
	most := slices.Max(caps)
	if most > exactSums || len(it.size) == 0 {
		return false
	}
	var reachable reach
	reachable.build(it.size, it.count, most)
	room := int64(0)
	for _, capacity := range caps {
		room += reachable.most(capacity)
	}
	return room < it.total
}
