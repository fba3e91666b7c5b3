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

func (known *pool) add(it *itemTable, found []taken) {
	load := int64(0)
	for _, take := range found {
		load += int64(take.count) * it.size[take.kind]
	}
	known.sets, known.loads = append(known.sets, set{items: found}), append(known.loads, load)
}

// gain is the least by which a set must be worth more than its device costs.
const gain = 1e-6

// enterBest enters what gains most, of the known sets and of rows whose price is
// below 0, which it pays to exceed. It says whether there was any, and whether
// it could be entered.
func (lp *program) enterBest(known *pool) (found, entered bool) {
	most, best, group := gain, -1, 0
	costs := lp.prices[len(lp.it.size):]
	for i := range known.sets {
		if worth := lp.valued(known.sets[i].items); worth > most {
			for g, capacity := range lp.caps {
				if known.loads[i] <= capacity && worth-costs[g] > most {
					most, best, group = worth-costs[g], i, g
				}
			}
		}
	}
	if row := lp.negative(); row >= 0 && (best < 0 || -lp.duals[row] > most) {
		return true, lp.enter([]entry{{row, -1}}, nil)
	}
	return best >= 0, best >= 0 && lp.enterSet(known.sets[best].items, group)
}

// enterApart enters known sets that share no items, the first ones first: each
// takes the place of sets of one kind, and none that of another, so that the
// answer is soon near to a packing.
func (lp *program) enterApart(known *pool) {
	left := slices.Clone(lp.it.count)
	for i, set := range known.sets {
		apart := known.loads[i] <= lp.caps[0]
		for _, take := range set.items {
			apart = apart && take.count <= left[take.kind]
		}
		if !apart {
			continue
		}
		lp.enterSet(set.items, 0)
		for _, take := range set.items {
			left[take.kind] -= take.count
		}
	}
}

// enterSet brings a set into the basis, on a device of a group.
func (lp *program) enterSet(items []taken, group int) bool {
	return lp.enter(append(lp.entries(items), entry{lp.nodes() + group, -1}), items)
}

// valued is what a set is worth at the basis's prices; 0 where not all of it is
// left.
func (lp *program) valued(items []taken) float64 {
	worth := 0.0
	for _, take := range items {
		if take.count > lp.it.count[take.kind] {
			return 0
		}
		worth += float64(take.count) * lp.prices[take.kind]
	}
	return worth
}

// separate looks for a set that gains. It asks under prices between those of
// the basis and the best so far, which wander less (Wentges, International
// Transactions in Operational Research 4, 1997), and under the basis's own
// where that finds nothing. found is nil where no set gains.
func (lp *program) separate() (found []taken, group int) {
	const near = 0.7
	kinds := len(lp.it.size)
	between := make([]float64, kinds)
	for kind := range between {
		between[kind] = (1-near)*lp.prices[kind] + near*lp.total*float64(lp.of[kind])/float64(lp.most)
	}
	for _, at := range [][]float64{between, lp.prices[:kinds]} {
		whole := lp.whole(at)
		lp.keep(whole)
		most := gain
		for g, capacity := range lp.caps {
			items := lp.table.set(lp.it, whole, capacity)
			if gained := lp.valued(items) - lp.prices[kinds+g]; gained > most {
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
func (lp *program) keep(of []int64) {
	lp.table.fill(lp.it, of)
	worth, most := int64(0), int64(0)
	for kind, count := range lp.it.count {
		worth += int64(count) * of[kind]
	}
	for group, capacity := range lp.caps {
		most += lp.devices[group] * lp.table.best(0, capacity)
	}
	if most > 0 && float64(worth)*float64(lp.most) > float64(lp.worth)*float64(most) {
		lp.of, lp.most, lp.worth = of, most, worth
	}
}

// price finds the rows' prices in this basis, and with them the items'.
func (lp *program) price() {
	clear(lp.duals)
	for r, row := range lp.inverse {
		if lp.cost[r] > 0 {
			for other, x := range row {
				lp.duals[other] += lp.cost[r] * x
			}
		}
	}
	clear(lp.prices)
	for kind, parts := range lp.parts {
		for _, part := range parts {
			lp.prices[kind] += part.value * lp.duals[part.row]
		}
	}
	copy(lp.prices[len(lp.parts):], lp.duals[lp.nodes():])
}

// whole rounds prices; below 0 is 0, and the highest is at most unitPrice.
func (lp *program) whole(prices []float64) []int64 {
	of := make([]int64, len(lp.it.size))
	unit := unitPrice / max(1, slices.Max(prices[:len(of)]))
	for kind := range of {
		of[kind] = int64(math.Round(max(0, prices[kind]) * unit))
	}
	return of
}

// negative finds the row of lowest price below 0: exceeding it pays.
func (lp *program) negative() int {
	row, lowest := -1, -1e-7
	for r, x := range lp.duals {
		if x < lowest {
			row, lowest = r, x
		}
	}
	return row
}
