package assign

import (
	"context"
	"math"
)

// unitPrice is what a full device is worth in whole numbers, about.
const unitPrice = 1 << 20

// program is the linear program "for how many times these devices is there
// work, where each device takes shares of the sets that it may hold" (Gilmore
// and Gomory, Operations Research 9, 1961), by column generation. Its dual
// values are prices of items: where all items are worth more than the most
// valuable sets that the devices can hold, they do not fit. Only that statement
// is used, with the prices rounded to whole numbers, so that errors of floating
// point cannot make it wrong.
type program struct {
	it    *itemTable
	table *knapsack
	// caps and devices are the room and the number of each group of devices.
	caps, devices []int64
	total         float64 // devices in all
	// There is a row for each node of the blend of items, to be covered, and one
	// for each group, whose sets must not be more than devices times the answer.
	// inverse is that of the basis, cost and share belong to its columns, and
	// column are their sets; nil is none.
	blend
	inverse            [][]float64
	cost, share, duals []float64
	column             [][]taken
	// prices are those of an item of each kind and, behind them, of each group.
	prices []float64
	// of are the whole prices that prove most so far: all items are worth
	// worth, and the devices hold no more than most.
	of          []int64
	most, worth int64
}

// dual solves the program and returns whole prices, what the most valuable set
// costs in each group, and whether they prove that the items do not fit. ok is
// false where the tables would be too large.
func (it *itemTable) dual(ctx context.Context, caps []int64, left []int, known *pool) (of, most []int64, table *knapsack, refuted, ok bool) {
	table = newKnapsack(it, caps[0])
	if table == nil {
		return nil, nil, nil, false, false
	}
	var lp *program
	for _, nodes := range []int{coarse, fine} {
		if lp != nil && (lp.worth > lp.most || lp.nodes() == len(it.size)) {
			break
		}
		lp = newProgram(it, table, caps, left, nodes).above(lp)
		lp.solve(ctx, known, func() bool { return lp.worth > lp.most })
	}
	table.fill(it, lp.of)
	for _, capacity := range caps {
		most = append(most, table.best(0, capacity))
	}
	return lp.of, most, table, lp.worth > lp.most, true
}

// above takes over the prices of another program that prove more.
func (lp *program) above(other *program) *program {
	if other != nil && float64(other.worth)*float64(lp.most) > float64(lp.worth)*float64(other.most) {
		lp.of, lp.most, lp.worth = other.of, other.most, other.worth
	}
	return lp
}

// solve goes from basis to basis until the best, a limit of work, or enough. Sets
// come from those known, which join them when they are found.
func (lp *program) solve(ctx context.Context, known *pool, enough func() bool) {
	lp.enterApart(known)
	for round := 0; round < 40*lp.nodes()+400 && ctx.Err() == nil && !enough(); round++ {
		lp.price()
		if found, entered := lp.enterBest(known); entered {
			continue
		} else if found {
			break
		}
		found, group := lp.separate()
		if found == nil || !lp.enterSet(found, group) {
			break
		}
		known.add(lp.it, found)
	}
}

// uneven is how much more of a row is asked for than there is, at most, by parts
// of it that differ: else many bases are as good as each other, and the program
// goes round among them.
const uneven = 1e-4

// newProgram starts with sets of one kind each, as many as fit on a device of
// the first group, and so many times the devices as that takes.
func newProgram(it *itemTable, table *knapsack, caps []int64, left []int, nodes int) *program {
	lp := &program{it: it, table: table, blend: newBlend(it, nodes)}
	for group, count := range left {
		if count > 0 {
			lp.caps, lp.devices = append(lp.caps, caps[group]), append(lp.devices, int64(count))
			lp.total += float64(count)
		}
	}
	m := lp.nodes()
	rows := m + len(lp.caps)
	lp.cost, lp.share, lp.duals = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	lp.column, lp.prices = make([][]taken, rows), make([]float64, len(it.size)+len(lp.caps))
	for range rows {
		lp.inverse = append(lp.inverse, make([]float64, rows))
	}
	first := float64(lp.devices[0])
	for row, kind := range lp.at {
		copies := max(1, min(int64(it.count[kind]), lp.caps[0]/it.size[kind]))
		amount := float64(copies)
		lp.column[row] = []taken{{kind, int(copies)}}
		lp.inverse[row][row] = 1 / amount
		lp.share[row] = (lp.asked[row] + uneven*math.Mod(float64(row+1)*math.Phi, 1)) / amount
		for group, k := range lp.devices {
			lp.inverse[m+group][row] = float64(k) / first / amount
		}
	}
	for kind, size := range it.size {
		lp.prices[kind] = float64(size) / float64(lp.caps[0])
	}
	lp.cost[m] = lp.total
	for group, k := range lp.devices {
		lp.inverse[m+group][m] = float64(k) / first
		lp.inverse[m+group][m+group]--
	}
	for row := range m { // the first group's row is the answer, times one device
		lp.inverse[m][row] /= first
		lp.share[m] += lp.share[row] / first
	}
	lp.inverse[m][m] = 1 / first
	for group := 1; group < len(lp.devices); group++ {
		lp.share[m+group] = lp.share[m] * float64(lp.devices[group])
	}
	lp.of, lp.most = lp.whole(lp.prices), math.MaxInt64
	lp.keep(lp.of)
	return lp
}

// entry is a column's in one row.
type entry struct {
	row   int
	value float64
}

// enter brings a column into the basis, by the ratio test. A set belongs to it,
// or none where it lets a row be exceeded.
func (lp *program) enter(entries []entry, set []taken) bool {
	m := len(lp.cost)
	step := make([]float64, m)
	for r, row := range lp.inverse {
		for _, entry := range entries {
			step[r] += entry.value * row[entry.row]
		}
	}
	out, least := -1, math.Inf(1)
	for row := range m {
		if step[row] <= 1e-9 {
			continue
		}
		if ratio := max(lp.share[row], 0) / step[row]; ratio < least-1e-12 || ratio < least+1e-12 && step[row] > step[out] {
			out, least = row, ratio
		}
	}
	if out < 0 {
		return false
	}
	pivot := lp.inverse[out]
	for row := range pivot {
		pivot[row] /= step[out]
	}
	lp.share[out], lp.cost[out], lp.column[out] = least, 0, set
	for r, row := range lp.inverse {
		if r == out || step[r] == 0 {
			continue
		}
		lp.share[r] -= step[r] * least
		for other := range row {
			row[other] -= step[r] * pivot[other]
		}
	}
	return true
}
