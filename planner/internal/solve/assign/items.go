package assign

import (
	"cmp"
	"math/big"
	"slices"
)

// itemTable is a problem in units of the sizes' greatest common divisor. Items of
// size 0 are left out.
type itemTable struct {
	problem *Problem
	unit    int64
	sorted  []int   // items, largest first
	weight  []int64 // their sizes in units
	total   int64
	// Equal sizes together, largest first: kind t has count[t] items of size[t],
	// which are sorted[first[t]:first[t]+count[t]].
	size  []int64
	count []int
	first []int
}

func newItems(problem *Problem) *itemTable {
	it := &itemTable{problem: problem}
	for i, size := range problem.Sizes {
		if size > 0 {
			it.sorted = append(it.sorted, i)
			it.unit = gcd(it.unit, size)
		}
	}
	slices.SortStableFunc(it.sorted, func(a, b int) int { return cmp.Compare(problem.Sizes[b], problem.Sizes[a]) })
	for pos, i := range it.sorted {
		weight := problem.Sizes[i] / it.unit
		it.weight = append(it.weight, weight)
		it.total += weight
		if last := len(it.size) - 1; last >= 0 && it.size[last] == weight {
			it.count[last]++
			continue
		}
		it.size, it.count, it.first = append(it.size, weight), append(it.count, 1), append(it.first, pos)
	}
	it.unit = max(it.unit, 1)
	return it
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (it *itemTable) fixed(device int) int64 {
	if it.problem.Fixed == nil {
		return 0
	}
	return it.problem.Fixed[device]
}

// loads are the devices' loads in bytes under place, the devices of it.sorted.
func (it *itemTable) loads(place []int) []int64 {
	loads := make([]int64, len(it.problem.Budgets))
	for device := range loads {
		loads[device] = it.fixed(device)
	}
	for pos, device := range place {
		loads[device] += it.weight[pos] * it.unit
	}
	return loads
}

// value is the largest share, exactly.
func (it *itemTable) value(place []int) *big.Rat {
	most := new(big.Rat)
	for device, load := range it.loads(place) {
		if share := big.NewRat(load, it.problem.Budgets[device]); share.Cmp(most) > 0 {
			most = share
		}
	}
	return most
}

// room is how many units each device may take for a share of at most limit, or
// below it where strict; negative where what is fixed is already too much.
func (it *itemTable) room(limit *big.Rat, strict bool) []int64 {
	caps := make([]int64, len(it.problem.Budgets))
	var load, rest big.Int
	for device, budget := range it.problem.Budgets {
		load.Mul(limit.Num(), big.NewInt(budget))
		load.DivMod(&load, limit.Denom(), &rest)
		if strict && rest.Sign() == 0 {
			load.Sub(&load, big.NewInt(1))
		}
		load.Sub(&load, big.NewInt(it.fixed(device)))
		load.Div(&load, big.NewInt(it.unit)) // towards −∞
		caps[device] = it.total
		if load.IsInt64() {
			caps[device] = max(min(load.Int64(), it.total), -1)
		}
	}
	return caps
}

// next is the least share above the limit that gave these caps: where nothing
// fits, a device must hold one unit more than it may.
func (it *itemTable) next(caps []int64) *big.Rat {
	var least *big.Rat
	for device, capacity := range caps {
		if capacity < 0 { // its fixed load alone is above the limit
			least = lower(least, big.NewRat(it.fixed(device), it.problem.Budgets[device]))
			continue
		}
		if capacity < it.total {
			least = lower(least, big.NewRat(it.fixed(device)+(capacity+1)*it.unit, it.problem.Budgets[device]))
		}
	}
	return least
}

func lower(a, b *big.Rat) *big.Rat {
	if a == nil || b.Cmp(a) < 0 {
		return b
	}
	return a
}
