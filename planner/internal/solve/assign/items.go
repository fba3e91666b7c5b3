package assign

import (
	"cmp"
	"math/big"
	"slices"
)

// items is a problem in units of the sizes' greatest common divisor. Items of
// size 0 are left out.
type items struct {
	p      *Problem
	unit   int64
	sorted []int   // items, largest first
	weight []int64 // their sizes in units
	total  int64
	// Equal sizes together, largest first: kind t has count[t] items of size[t],
	// which are sorted[first[t]:first[t]+count[t]].
	size  []int64
	count []int
	first []int
}

func newItems(p *Problem) *items {
	it := &items{p: p}
	for i, s := range p.Sizes {
		if s > 0 {
			it.sorted = append(it.sorted, i)
			it.unit = gcd(it.unit, s)
		}
	}
	slices.SortStableFunc(it.sorted, func(a, b int) int { return cmp.Compare(p.Sizes[b], p.Sizes[a]) })
	for pos, i := range it.sorted {
		w := p.Sizes[i] / it.unit
		it.weight = append(it.weight, w)
		it.total += w
		if last := len(it.size) - 1; last >= 0 && it.size[last] == w {
			it.count[last]++
			continue
		}
		it.size, it.count, it.first = append(it.size, w), append(it.count, 1), append(it.first, pos)
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

func (it *items) fixed(d int) int64 {
	if it.p.Fixed == nil {
		return 0
	}
	return it.p.Fixed[d]
}

// loads are the devices' loads in bytes under place, the devices of it.sorted.
func (it *items) loads(place []int) []int64 {
	loads := make([]int64, len(it.p.Budgets))
	for d := range loads {
		loads[d] = it.fixed(d)
	}
	for pos, d := range place {
		loads[d] += it.weight[pos] * it.unit
	}
	return loads
}

// value is the largest share, exactly.
func (it *items) value(place []int) *big.Rat {
	most := new(big.Rat)
	for d, load := range it.loads(place) {
		if share := big.NewRat(load, it.p.Budgets[d]); share.Cmp(most) > 0 {
			most = share
		}
	}
	return most
}

// room is how many units each device may take for a share of at most limit, or
// below it where strict; negative where what is fixed is already too much.
func (it *items) room(limit *big.Rat, strict bool) []int64 {
	caps := make([]int64, len(it.p.Budgets))
	var load, rest big.Int
	for d, b := range it.p.Budgets {
		load.Mul(limit.Num(), big.NewInt(b))
		load.DivMod(&load, limit.Denom(), &rest)
		if strict && rest.Sign() == 0 {
			load.Sub(&load, big.NewInt(1))
		}
		load.Sub(&load, big.NewInt(it.fixed(d)))
		load.Div(&load, big.NewInt(it.unit)) // towards −∞
		caps[d] = it.total
		if load.IsInt64() {
			caps[d] = max(min(load.Int64(), it.total), -1)
		}
	}
	return caps
}

// next is the least share above the limit that gave these caps: where nothing
// fits, a device must hold one unit more than it may.
func (it *items) next(caps []int64) *big.Rat {
	var least *big.Rat
	for d, c := range caps {
		if c < 0 { // its fixed load alone is above the limit
			least = lower(least, big.NewRat(it.fixed(d), it.p.Budgets[d]))
			continue
		}
		if c < it.total {
			least = lower(least, big.NewRat(it.fixed(d)+(c+1)*it.unit, it.p.Budgets[d]))
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
