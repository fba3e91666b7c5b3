package assign

import "math"

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

// enterKnown enters the known set that is worth most, if more than 1.
func (p *program) enterKnown(known *pool) bool {
	most, best := 1+1e-6, -1
	for i := range known.sets {
		if known.loads[i] > p.room {
			continue
		}
		worth := 0.0
		for _, t := range known.sets[i].items {
			if t.n > p.it.count[t.kind] {
				worth = 0
				break
			}
			worth += float64(t.n) * p.prices[t.kind]
		}
		if worth > most {
			most, best = worth, i
		}
	}
	return best >= 0 && p.enter(known.sets[best].items, 1, 1)
}

// separate looks for a set worth more than 1. It asks under prices between
// those of the basis and the best so far, which wander less (Wentges,
// International Transactions in Operational Research 4, 1997), and under the
// basis's own where that finds nothing. end says that no set is.
func (p *program) separate() (found []taken, end bool) {
	const near = 0.7
	between := make([]float64, len(p.prices))
	for t, x := range p.prices {
		between[t] = (1-near)*x + near*float64(p.of[t])/float64(p.most)
	}
	for _, at := range [][]float64{between, p.prices} {
		whole := p.whole(at)
		p.table.fill(p.it, whole)
		top := p.table.best(0, p.room)
		found = p.table.set(p.it, whole, p.room)
		p.keep(whole, top)
		reduced := 0.0
		for _, t := range found {
			reduced += float64(t.n) * p.prices[t.kind]
		}
		if reduced > 1+1e-6 {
			return found, false
		}
	}
	return nil, true
}

// keep notes prices that prove more than the best so far.
func (p *program) keep(of []int64, most int64) {
	worth := int64(0)
	for t, n := range p.it.count {
		worth += int64(n) * of[t]
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
				p.prices[t] += x
			}
		}
	}
}

// whole rounds the prices; below 0 is 0.
func (p *program) whole(prices []float64) []int64 {
	of := make([]int64, len(prices))
	for t, x := range prices {
		// No item is worth more than the devices that it fits on alone: 1.
		of[t] = int64(math.Round(max(0, min(x, 2)) * unitPrice))
	}
	return of
}

// negative finds the item of lowest price below 0: leaving out one of it pays.
func (p *program) negative() int {
	row, lowest := -1, -1e-7
	for t, x := range p.prices {
		if x < lowest {
			row, lowest = t, x
		}
	}
	return row
}
