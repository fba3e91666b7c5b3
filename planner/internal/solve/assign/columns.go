package assign

import (
	"math"
	"slices"
)

// pool holds sets found before, for programs under other rooms and for what is
// left of the items: looking through them is cheaper than finding them again.
type pool struct {
	sets  []set
	loads []int64
}

func (k *pool) add(it *items, found []taken) {
	load := int64(0)
	for _, t := range found {
		load += int64(t.n) * it.size[t.kind]
	}
	k.sets, k.loads = append(k.sets, set{items: found}), append(k.loads, load)
}

// gain is the least by which a set must be worth more than its device costs.
const gain = 1e-6

// enterKnown enters the known set that gains most.
func (p *program) enterKnown(known *pool) bool {
	most, best, group := gain, -1, 0
	costs := p.prices[len(p.it.size):]
	for i := range known.sets {
		if worth := p.valued(known.sets[i].items); worth > most {
			for g, c := range p.caps {
				if known.loads[i] <= c && worth-costs[g] > most {
					most, best, group = worth-costs[g], i, g
				}
			}
		}
	}
	return best >= 0 && p.enterSet(known.sets[best].items, group)
}

// enterSet brings a set into the basis, on a device of a group.
func (p *program) enterSet(items []taken, group int) bool {
	return p.enter(append(slices.Clip(items), taken{len(p.it.size) + group, -1}), 1)
}

// valued is what a set is worth at the basis's prices; 0 where not all of it is
// left.
func (p *program) valued(items []taken) float64 {
	worth := 0.0
	for _, t := range items {
		if t.n > p.it.count[t.kind] {
			return 0
		}
		worth += float64(t.n) * p.prices[t.kind]
	}
	return worth
}

// separate looks for a set that gains. It asks under prices between those of
// the basis and the best so far, which wander less (Wentges, International
// Transactions in Operational Research 4, 1997), and under the basis's own
// where that finds nothing. found is nil where no set gains.
func (p *program) separate() (found []taken, group int) {
	const near = 0.7
	kinds := len(p.it.size)
	between := make([]float64, kinds)
	for t := range between {
		between[t] = (1-near)*p.prices[t] + near*p.total*float64(p.of[t])/float64(p.most)
	}
	for _, at := range [][]float64{between, p.prices[:kinds]} {
		whole := p.whole(at)
		p.keep(whole)
		most := gain
		for g, c := range p.caps {
			items := p.table.set(p.it, whole, c)
			if gained := p.valued(items) - p.prices[kinds+g]; gained > most {
				most, found, group = gained, items, g
			}
		}
		if found != nil {
			break
		}
	}
	return found, group
}

// keep fills the table with prices and notes them if they prove more than the
// best so far.
func (p *program) keep(of []int64) {
	p.table.fill(p.it, of)
	worth, most := int64(0), int64(0)
	for t, n := range p.it.count {
		worth += int64(n) * of[t]
	}
	for g, c := range p.caps {
		most += p.devices[g] * p.table.best(0, c)
	}
	if most > 0 && float64(worth)*float64(p.most) > float64(p.worth)*float64(most) {
		p.of, p.most, p.worth = of, most, worth
	}
}

// price finds the items' prices in this basis.
func (p *program) price() {
	clear(p.prices)
	for r, row := range p.inverse {
		if p.cost[r] > 0 {
			for t, x := range row {
				p.prices[t] += p.cost[r] * x
			}
		}
	}
}

// whole rounds prices; below 0 is 0, and the highest is at most unitPrice.
func (p *program) whole(prices []float64) []int64 {
	of := make([]int64, len(p.it.size))
	unit := unitPrice / max(1, slices.Max(prices[:len(of)]))
	for t := range of {
		of[t] = int64(math.Round(max(0, prices[t]) * unit))
	}
	return of
}

// negative finds the row of lowest price below 0: exceeding it pays.
func (p *program) negative() int {
	row, lowest := -1, -1e-7
	for t, x := range p.prices {
		if x < lowest {
			row, lowest = t, x
		}
	}
	return row
}
