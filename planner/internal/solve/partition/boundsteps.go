package partition

import (
	"context"
	"math"
	"slices"
)

// leastLoad is what loads must be above to be told apart in cells.
const leastLoad = 1e-300

// improve makes steps until the bound reaches the limit or they are used up.
func (b *setBound) improve(ctx context.Context, limit float64, steps int) {
	if limit < leastLoad {
		return
	}
	for range steps {
		if !b.price(ctx, limit) || b.bound >= limit {
			return
		}
		if b.stale > staleSteps {
			b.stale = 0
			b.lead = max(b.lead/2, leastLead)
			b.step = max(b.step*0.7, 0.05)
			copy(b.y, b.best)
			if !b.price(ctx, limit) {
				return
			}
		}
		if !b.move(min(b.bound*(1+b.lead), limit)) {
			return
		}
	}
}

// price finds what devices can take at the present prices, and the bound.
func (b *setBound) price(ctx context.Context, limit float64) bool {
	total, size := 0.0, 0.0
	for _, y := range b.y {
		total += y
		size += math.Abs(y)
	}
	for j, c := range b.pricers {
		if b.fronts[j] = c.price(ctx, b.y, limit); b.fronts[j] == nil {
			return false
		}
	}
	b.stale++
	if t := b.refuted(total-rounding*size, limit); t > b.bound {
		if t > b.bound*(1+1e-4) {
			b.stale = 0
		}
		b.bound = t
		copy(b.best, b.y)
	}
	return true
}

// move changes the prices along the subgradient, at the aim, of what devices
// can take less what there is: up where no device's best set holds the item.
func (b *setBound) move(aim float64) bool {
	excess, total := 0.0, 0.0
	for v, y := range b.y {
		b.g[v] = -1
		total += y
	}
	for j, k := range b.kinds {
		n := float64(b.count[k])
		last := within(b.fronts[j], aim)
		excess += n * b.fronts[j][last].worth
		b.pricers[j].set(last, b.g, n)
	}
	norm := 0.0
	for v, g := range b.g {
		norm += g * g * b.scale[v] * b.scale[v]
	}
	if norm == 0 {
		return false
	}
	length := b.step * (max(excess-total, 0) + 0.001*total) / norm
	for v, g := range b.g {
		b.y[v] -= length * g * b.scale[v] * b.scale[v]
	}
	return true
}

// within is the last label of load up to t.
func within(front []label, t float64) int {
	i, _ := slices.BinarySearchFunc(front, t, func(a label, t float64) int {
		if a.load <= t {
			return -1
		}
		return 1
	})
	return i - 1
}

// refuted is the least load at which the devices together can take what all
// items are worth, or the limit.
func (b *setBound) refuted(total, limit float64) float64 {
	next := make([]int, len(b.fronts))
	worth := 0.0
	for j, front := range b.fronts {
		worth += float64(b.count[b.kinds[j]]) * front[0].worth
	}
	t := 0.0
	for worth < total {
		pick := -1
		for j, front := range b.fronts {
			if next[j]+1 < len(front) && (pick < 0 || front[next[j]+1].load < b.fronts[pick][next[pick]+1].load) {
				pick = j
			}
		}
		if pick < 0 {
			return limit
		}
		a, z := b.fronts[pick][next[pick]], b.fronts[pick][next[pick]+1]
		worth += float64(b.count[b.kinds[pick]]) * (z.worth - a.worth)
		t = z.load
		next[pick]++
	}
	return t * (1 - 1e-9)
}
