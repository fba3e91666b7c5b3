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
	it    *items
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
func (it *items) dual(ctx context.Context, caps []int64, left []int, known *pool) (of, most []int64, table *knapsack, refuted, ok bool) {
	table = newKnapsack(it, caps[0])
	if table == nil {
		return nil, nil, nil, false, false
	}
	p := newProgram(it, table, caps, left)
	for round := 0; round < 40*len(it.size)+400 && ctx.Err() == nil && p.worth <= p.most; round++ {
		p.price()
		if row := p.negative(); row >= 0 {
			if !p.enter([]taken{{row, 1}}, -1) {
				break
			}
			continue
		}
		if p.enterKnown(known) {
			continue
		}
		found, group := p.separate()
		if found == nil || !p.enterSet(found, group) {
			break
		}
		known.add(it, found)
	}
	table.fill(it, p.of)
	for _, c := range caps {
		most = append(most, table.best(0, c))
	}
	return p.of, most, table, p.worth > p.most, true
}

// newProgram starts with the sets of one kind each, as many as fit on a device
// of the first group, and so many times the devices as that takes.
func newProgram(it *items, table *knapsack, caps []int64, left []int) *program {
	p := &program{it: it, table: table}
	for g, n := range left {
		if n > 0 {
			p.caps, p.devices = append(p.caps, caps[g]), append(p.devices, int64(n))
			p.total += float64(n)
		}
	}
	m := len(it.size)
	rows := m + len(p.caps)
	p.cost, p.share, p.prices = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	for range rows {
		p.inverse = append(p.inverse, make([]float64, rows))
	}
	first := float64(p.devices[0])
	for t := range m {
		n := float64(max(1, min(int64(it.count[t]), p.caps[0]/it.size[t])))
		p.inverse[t][t] = 1 / n
		p.share[t] = float64(it.count[t]) / n
		for g, k := range p.devices {
			p.inverse[m+g][t] = float64(k) / first / n
		}
		p.prices[t] = float64(it.size[t]) / float64(p.caps[0])
	}
	p.cost[m] = p.total
	for g, k := range p.devices {
		p.inverse[m+g][m] = float64(k) / first
		p.inverse[m+g][m+g]--
	}
	for t := range m { // the first group's row is the answer, times one device
		p.inverse[m][t] /= first
		p.share[m] += p.share[t] / first
	}
	p.inverse[m][m] = 1 / first
	for g := 1; g < len(p.devices); g++ {
		p.share[m+g] = p.share[m] * float64(p.devices[g])
	}
	p.of, p.most = p.whole(p.prices), math.MaxInt64
	p.keep(p.of)
	return p
}

// enter brings a column into the basis, by the ratio test: entries of rows, in
// the form of items. Sign −1 lets a row be exceeded.
func (p *program) enter(items []taken, sign float64) bool {
	m := len(p.cost)
	step := make([]float64, m)
	for r, row := range p.inverse {
		for _, t := range items {
			step[r] += sign * float64(t.n) * row[t.kind]
		}
	}
	out, least := -1, math.Inf(1)
	for r := range m {
		if step[r] <= 1e-9 {
			continue
		}
		if ratio := max(p.share[r], 0) / step[r]; ratio < least-1e-12 || ratio < least+1e-12 && step[r] > step[out] {
			out, least = r, ratio
		}
	}
	if out < 0 {
		return false
	}
	pivot := p.inverse[out]
	for t := range pivot {
		pivot[t] /= step[out]
	}
	p.share[out], p.cost[out] = least, 0
	for r, row := range p.inverse {
		if r == out || step[r] == 0 {
			continue
		}
		p.share[r] -= step[r] * least
		for t := range row {
			row[t] -= step[r] * pivot[t]
		}
	}
	return true
}
