package partition

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
)

// wholeProblem is a random problem in whole numbers, so that sizes are equal
// to each other and fill capacities exactly, and ties are common.
func wholeProblem(r *rand.Rand) *Problem {
	p := randomProblem(r)
	for k := range p.Kinds {
		if c := p.Kinds[k].Capacity; !math.IsInf(c, 1) {
			p.Kinds[k].Capacity = float64(2 + r.IntN(9))
		}
	}
	for v := range p.Nodes {
		n := &p.Nodes[v]
		n.Size, n.Transfer = float64(r.IntN(5)), float64(r.IntN(4))
		for k := range n.Time {
			n.Time[k] = math.Round(4 * n.Time[k])
		}
	}
	return p
}

// eachSet calls f with every set of the items.
func eachSet(items int, f func(has func(int) bool)) {
	for set := range uint(1) << items {
		f(func(i int) bool { return set>>uint(i)&1 != 0 })
	}
}

// loadOf is what a device of a kind has to do for a set of items.
func (l *netlist) loadOf(kind int, has func(int) bool) float64 {
	load := 0.
	for i := range l.nodes {
		if has(i) {
			load += l.time[kind][i]
		}
	}
	for _, w := range l.wires {
		in := 0
		for _, m := range w.members {
			if has(int(m)) {
				in++
			}
		}
		if in > 0 && in < len(w.members) && !l.free[kind] {
			load += w.cost
		}
	}
	return load
}

// TestUnitBound: the bound is the largest, over the items, of the least load
// of a device that holds the item, in any company of items that fit beside it
// each for itself. That is its definition, and it is held to it exactly.
func TestUnitBound(t *testing.T) {
	t.Parallel()
	bounded, full := 0, 0
	for seed := range uint64(1200) {
		r := rand.New(rand.NewPCG(seed, 21))
		p := wholeProblem(r)
		if seed%2 == 0 { // not all that fit beside an item fit beside each other, and company pays
			p.Kinds = p.Kinds[:1]
			p.Kinds[0].Capacity = float64(3 + r.IntN(4))
			for v := range p.Nodes {
				p.Nodes[v].Time, p.Nodes[v].Transfer, p.Nodes[v].Size = []float64{float64(r.IntN(3))}, float64(r.IntN(9)), float64(r.IntN(5))
			}
		}
		l := newNetlist(newInstance(p, p.groups()))
		want := 0.
		for v := range l.nodes {
			least := math.Inf(1)
			for k, n := range l.count {
				if n == 0 || l.size[v] > l.capacity[k] {
					continue
				}
				if l.size[v] == p.Kinds[k].Capacity {
					full++
				}
				eachSet(len(l.nodes), func(has func(int) bool) {
					for u := range l.nodes {
						if has(u) && u != v && l.size[u]+l.size[v] > l.capacity[k] {
							return
						}
					}
					if has(v) {
						least = min(least, l.loadOf(k, has))
					}
				})
			}
			if !math.IsInf(least, 1) {
				want = max(want, least)
			}
		}
		got, item := l.unitBound(context.Background())
		if math.Abs(got-want) > 1e-9*want {
			t.Fatalf("seed %d: the bound is %v (item %d), by every set %v", seed, got, item, want)
		}
		if !math.IsInf(p.Kinds[0].Capacity, 1) {
			bounded++
		}
	}
	if bounded < 300 || full < 50 {
		t.Errorf("%d problems with a capacity, %d items that fill one", bounded, full)
	}
}

// TestPrices: no set that a device can take within a load is worth more than
// what the walk over the frontier says, at any prices, with all wires or with
// those left out that make it wide; and without joined cells that is exact.
func TestPrices(t *testing.T) {
	t.Parallel()
	exact, wide := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 22))
		p := wholeProblem(r)
		l := newNetlist(newInstance(p, p.groups()))
		used := make([]bool, len(l.wires))
		for w := range used {
			used[w] = true
		}
		order := l.thinOrder(context.Background(), used)
		f := l.layOut(context.Background(), order, used, 3)
		for f == nil { // as newFrontier does
			wide++
			l.dropWires(order, used)
			f = l.layOut(context.Background(), order, used, 3)
		}
		y := make([]float64, len(l.nodes))
		for i := range y {
			y[i] = float64(r.IntN(9) - 1)
		}
		limit := float64(1 + r.IntN(30))
		cells := 1 + r.IntN(400)
		front := newPricer(f, l.time[0], cells).price(context.Background(), y, limit)
		// What all devices can take within the least load at which they can
		// take everything: no less is needed for any assignment.
		b := &setBound{netlist: l, kinds: []int{0}, fronts: [][]label{front}}
		total := float64(r.IntN(30))
		reach := limit
		for i := len(front) - 1; i >= 0 && float64(l.count[0])*front[i].worth >= total; i-- {
			reach = front[i].load
		}
		if got := b.refuted(total, limit); math.Abs(got-reach) > 1e-6*(1+reach) {
			t.Fatalf("seed %d: %d devices of %v take %v at a load of %v, said to be %v", seed, l.count[0], front, total, reach, got)
		}
		kept := true
		for _, u := range used {
			kept = kept && u
		}
		for load := 0.; load <= limit; load++ {
			most := 0.
			eachSet(len(l.nodes), func(has func(int) bool) {
				worth := 0.
				for i := range y {
					if has(i) {
						worth += y[i]
					}
				}
				if p := l.loadOf(0, has); p <= load && !l.free[0] {
					most = max(most, worth)
				}
			})
			got := front[within(front, load)].worth
			if got < most-1e-9 {
				t.Fatalf("seed %d: a set within a load of %v is worth %v, and %v is said to be the most", seed, load, most, got)
			}
			if kept && float64(cells) > 3*limit && got == most {
				exact++
			} else if kept && float64(cells) > 3*limit {
				t.Fatalf("seed %d: the most within %v is %v, said to be %v", seed, load, most, got)
			}
		}
	}
	if exact < 1000 || wide < 100 {
		t.Errorf("%d loads exact, wires left out %d times", exact, wide)
	}
}

// TestAverage: no assignment is below the average at any prices, nor below the
// largest item.
func TestAverage(t *testing.T) {
	t.Parallel()
	tried, met := 0, 0
	for seed := range uint64(800) {
		p := wholeProblem(rand.New(rand.NewPCG(seed, 23)))
		if math.Pow(float64(p.Devices()), float64(len(p.Nodes))) > 3000 {
			continue
		}
		least := leastOf(p)
		in := newInstance(p, p.groups())
		if math.IsInf(least, 1) || in.feasible() != nil {
			continue
		}
		_, average := in.average(in.everyKind(), in.size)
		item, time := in.largestItem()
		longest := 0.
		for i := range in.nodes {
			shortest := math.Inf(1)
			for k := range p.Kinds {
				if p.Kinds[k].Count > 0 && in.size[i] <= p.Kinds[k].Capacity {
					shortest = min(shortest, in.time[k][i])
				}
			}
			longest = max(longest, shortest)
		}
		if time != longest || average > least*(1+1e-9) || time > least*(1+1e-9) {
			t.Fatalf("seed %d: the average is %v, item %d takes %v, and the least is %v", seed, average, item, time, least)
		}
		tried++
		if max(average, time) > 0.9*least {
			met++
		}
	}
	if tried < 200 || met < 40 {
		t.Errorf("%d problems, %d of the bounds within a tenth", tried, met)
	}
}
