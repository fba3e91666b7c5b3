package assign

import (
	"context"
	"math"
)

// unitPrice is what a full device is worth in whole numbers, about.
const unitPrice = 1 << 20

// program is the linear program "the fewest devices of this room, each with a
// share of the sets that it may hold" (Gilmore and Gomory, Operations Research
// 9, 1961), by column generation. Its dual values are prices of items: where
// no set of items that fits is worth more than M, and all items are worth more
// than k·M, they do not fit on k devices. Only that statement is used, with the
// prices rounded to whole numbers, so that errors of floating point cannot make
// it wrong.
type program struct {
	it    *items
	table *knapsack
	room  int64
	// basis is a set a row; inverse that of their matrix, share how much of
	// each is used.
	inverse [][]float64
	cost    []float64
	share   []float64
	prices  []float64
	// of are the whole prices that prove most so far: all items are worth
	// worth, and no set that fits more than most.
	of          []int64
	most, worth int64
}

// dual solves the program under a room and returns whole prices, what the most
// valuable set costs, and whether they prove that the items do not fit. ok is
// false where the tables would be too large.
func (it *items) dual(ctx context.Context, room int64, devices int, known *pool) (of []int64, most int64, table *knapsack, refuted, ok bool) {
	table = newKnapsack(it, room)
	if table == nil {
		return nil, 0, nil, false, false
	}
	p := newProgram(it, table, room)
	for round := 0; round < 40*len(it.size)+400 && ctx.Err() == nil; round++ {
		p.price()
		if row := p.negative(); row >= 0 {
			if !p.enter([]taken{{row, 1}}, -1, 0) {
				break
			}
			continue
		}
		if p.enterKnown(known) {
			continue
		}
		found, end := p.separate()
		if p.worth > int64(devices)*p.most {
			return p.of, p.most, table, true, true
		}
		if end || !p.enter(found, 1, 1) {
			break
		}
		known.add(it, found)
	}
	table.fill(it, p.of)
	return p.of, p.most, table, false, true
}

// newProgram starts with the sets of one kind each, as many as fit.
func newProgram(it *items, table *knapsack, room int64) *program {
	m := len(it.size)
	p := &program{it: it, table: table, room: room, cost: make([]float64, m), share: make([]float64, m), prices: make([]float64, m)}
	p.inverse = make([][]float64, m)
	for t := range m {
		n := max(1, min(int64(it.count[t]), room/it.size[t]))
		p.inverse[t] = make([]float64, m)
		p.inverse[t][t] = 1 / float64(n)
		p.cost[t] = 1
		p.share[t] = float64(it.count[t]) / float64(n)
		p.prices[t] = float64(it.size[t]) / float64(room)
	}
	sizes := p.whole(p.prices)
	table.fill(it, sizes)
	p.of, p.most = sizes, 1
	p.keep(sizes, table.best(0, room))
	return p
}

// enter brings a set into the basis, by the ratio test; sign −1 takes items out
// of what must be covered.
func (p *program) enter(items []taken, sign, cost float64) bool {
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
	p.share[out], p.cost[out] = least, cost
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
