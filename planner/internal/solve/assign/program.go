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
	// There is a row for each kind of item, to be covered, and one for each
	// group, whose sets must not be more than devices times the answer. inverse
	// is that of the basis, cost and share belong to its columns.
	inverse             [][]float64
	cost, share, prices []float64
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
	lp := newProgram(it, table, caps, left)
	for round := 0; round < 40*len(it.size)+400 && ctx.Err() == nil && lp.worth <= lp.most; round++ {
		lp.price()
		if row := lp.negative(); row >= 0 {
			if !lp.enter([]taken{{row, 1}}, -1) {
				break
			}
			continue
		}
		if lp.enterKnown(known) {
			continue
		}
		found, group := lp.separate()
		if found == nil || !lp.enterSet(found, group) {
			break
		}
		known.add(it, found)
	}
	table.fill(it, lp.of)
	for _, capacity := range caps {
		most = append(most, table.best(0, capacity))
	}
	return lp.of, most, table, lp.worth > lp.most, true
}

// newProgram starts with the sets of one kind each, as many as fit on a device
// of the first group, and so many times the devices as that takes.
func newProgram(it *itemTable, table *knapsack, caps []int64, left []int) *program {
	lp := &program{it: it, table: table}
	for group, count := range left {
		if count > 0 {
			lp.caps, lp.devices = append(lp.caps, caps[group]), append(lp.devices, int64(count))
			lp.total += float64(count)
		}
	}
	m := len(it.size)
	rows := m + len(lp.caps)
	lp.cost, lp.share, lp.prices = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	for range rows {
		lp.inverse = append(lp.inverse, make([]float64, rows))
	}
	first := float64(lp.devices[0])
	for kind := range m {
		amount := float64(max(1, min(int64(it.count[kind]), lp.caps[0]/it.size[kind])))
		lp.inverse[kind][kind] = 1 / amount
		lp.share[kind] = float64(it.count[kind]) / amount
		for group, k := range lp.devices {
			lp.inverse[m+group][kind] = float64(k) / first / amount
		}
		lp.prices[kind] = float64(it.size[kind]) / float64(lp.caps[0])
	}
	lp.cost[m] = lp.total
	for group, k := range lp.devices {
		lp.inverse[m+group][m] = float64(k) / first
		lp.inverse[m+group][m+group]--
	}
	for kind := range m { // the first group's row is the answer, times one device
		lp.inverse[m][kind] /= first
		lp.share[m] += lp.share[kind] / first
	}
	lp.inverse[m][m] = 1 / first
	for group := 1; group < len(lp.devices); group++ {
		lp.share[m+group] = lp.share[m] * float64(lp.devices[group])
	}
	lp.of, lp.most = lp.whole(lp.prices), math.MaxInt64
	lp.keep(lp.of)
	return lp
}

// enter brings a column into the basis, by the ratio test: entries of rows, in
// the form of items. Sign −1 lets a row be exceeded.
func (lp *program) enter(items []taken, sign float64) bool {
	m := len(lp.cost)
	step := make([]float64, m)
	for r, row := range lp.inverse {
		for _, take := range items {
			step[r] += sign * float64(take.count) * row[take.kind]
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
	for kind := range pivot {
		pivot[kind] /= step[out]
	}
	lp.share[out], lp.cost[out] = least, 0
	for r, row := range lp.inverse {
		if r == out || step[r] == 0 {
			continue
		}
		lp.share[r] -= step[r] * least
		for kind := range row {
			row[kind] -= step[r] * pivot[kind]
		}
	}
	return true
}
