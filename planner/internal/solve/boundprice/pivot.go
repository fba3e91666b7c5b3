package boundprice

import (
	"context"
	"math"
)

// duals works the prices out anew from the basis.
func (lp *master) duals() {
	clear(lp.dual)
	for row, code := range lp.basis {
		if cost := lp.cost(code); cost != 0 {
			inverse := lp.inverse[row*lp.rows : (row+1)*lp.rows]
			for i, value := range inverse {
				lp.dual[i] += cost * value
			}
		}
	}
}

// reduced is a column's cost less what its rows are worth.
func (lp *master) reduced(code int) float64 {
	cost := lp.cost(code)
	lp.each(code, func(row int, value float64) { cost -= lp.dual[row] * value })
	return cost
}

// entering is the column of the least reduced cost.
func (lp *master) entering() int {
	const enough = 1e-9
	pick, least := math.MinInt, -enough
	for set := range lp.sets {
		if lp.inBasis[set] {
			continue
		}
		cost := -lp.dual[lp.items+lp.sets[set].kind]
		for _, item := range lp.sets[set].items {
			cost -= lp.dual[item]
		}
		if cost < least {
			pick, least = set, cost
		}
	}
	for row := range lp.items {
		if cost := lp.high[row] - lp.dual[row]; cost < least {
			pick, least = lp.above(row), cost
		}
		if cost := lp.dual[row] - lp.low[row]; cost < least {
			pick, least = lp.below(row), cost
		}
	}
	for kind := range lp.count {
		if cost := -lp.dual[lp.items+kind]; cost < least {
			pick, least = lp.above(lp.items+kind), cost
		}
	}
	if cost := lp.reduced(theta); cost < least {
		pick = theta
	}
	return pick
}

// solve makes pivots until none helps, or they are many: any prices are prices.
func (lp *master) solve(ctx context.Context) {
	const anew, most = 50, 4
	lp.duals()
	for range most * lp.rows {
		if lp.pivots%64 == 63 && ctx.Err() != nil {
			return
		}
		if lp.pivots%anew == 0 {
			lp.duals()
		}
		code := lp.entering()
		if code == math.MinInt || !lp.pivot(code) {
			lp.duals()
			return
		}
	}
}

// pivot brings a column in; false where nothing limits it.
func (lp *master) pivot(code int) bool {
	change := lp.work
	clear(change)
	lp.each(code, func(at int, value float64) {
		for row := range change {
			change[row] += value * lp.inverse[row*lp.rows+at]
		}
	})
	leave, least := lp.leaving(change)
	if leave < 0 {
		return false
	}
	for row := range lp.level {
		lp.level[row] -= least * change[row]
	}
	lp.level[leave] = least
	pivotal := lp.inverse[leave*lp.rows : (leave+1)*lp.rows]
	scale := 1 / change[leave]
	for i := range pivotal {
		pivotal[i] *= scale
	}
	for row, by := range change {
		if row == leave || by == 0 {
			continue
		}
		target := lp.inverse[row*lp.rows : (row+1)*lp.rows]
		for i, value := range pivotal {
			target[i] -= by * value
		}
	}
	reduced := lp.reduced(code)
	for i, value := range pivotal {
		lp.dual[i] += reduced * value
	}
	if old := lp.basis[leave]; old >= 0 {
		lp.inBasis[old] = false
	}
	if code >= 0 {
		lp.inBasis[code] = true
	}
	lp.basis[leave] = code
	lp.pivots++
	return true
}

// leaving is the row whose column reaches 0 first as another comes in; of ties the
// one of the largest pivot.
func (lp *master) leaving(change []float64) (leave int, least float64) {
	const tiny = 1e-9
	leave, least = -1, math.Inf(1)
	for row, by := range change {
		if by <= tiny {
			continue
		}
		if ratio := max(lp.level[row], 0) / by; ratio < least-1e-12 || ratio < least+1e-12 && by > change[leave] {
			leave, least = row, ratio
		}
	}
	return leave, least
}

// value is the objective: θ, and what the box's sides pay.
func (lp *master) value() float64 {
	total := 0.0
	for row, code := range lp.basis {
		total += lp.cost(code) * lp.level[row]
	}
	return total
}
