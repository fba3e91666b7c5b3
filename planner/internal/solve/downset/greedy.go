package downset

import (
	"context"
	"math"
	"sort"
)

// greedy cuts one linear extension: every device takes as much as it can hold
// within a limit on its load, and of all ways to use up the devices' kinds the
// one that gets furthest goes on. Without transfers a shorter stretch is never
// more, so that this finds cuts within the capacities wherever the extension
// has some; transfers come and go, and with them it is a heuristic. It keeps a
// number for each combination of kinds, and no table of down-sets: it is the
// answer where there is no time or memory for any other.
type greedy struct {
	*stretch
	o     *order
	items []int
	t     *states
	// times, by kind, and sizes are prefix sums over the extension; barred is,
	// by kind and place, the first place from there that cannot run on it.
	times  [][]float64
	sizes  []float64
	barred [][]int
	// far is the memo of furthest, by kind and place; −1: not yet known.
	far   [][]int32
	reach []int32 // by state
	from  []int8  // the kind of a state's last device
	steps int
}

func newGreedy(o *order, items []int) *greedy {
	g := &greedy{stretch: newStretch(o.Instance, o.Size), o: o, items: items, t: newStates(o.Problem.Kinds, len(items), 0)}
	n := len(items)
	g.sizes = make([]float64, n+1)
	for i, v := range items {
		g.sizes[i+1] = g.sizes[i] + o.Size[v]
	}
	for k := range o.Problem.Kinds {
		times, barred := make([]float64, n+1), make([]int, n+1)
		for i, v := range items {
			times[i+1] = times[i]
			if t := o.Time[k][v]; !math.IsInf(t, 1) {
				times[i+1] += t
			}
		}
		barred[n] = n
		for i := n - 1; i >= 0; i-- {
			if barred[i] = barred[i+1]; math.IsInf(o.Time[k][items[i]], 1) {
				barred[i] = i
			}
		}
		g.times, g.barred, g.far = append(g.times, times), append(g.barred, barred), append(g.far, make([]int32, n+1))
	}
	g.reach, g.from = make([]int32, g.t.count), make([]int8, g.t.count)
	return g
}

// cut finds cuts with loads within a limit, or without a look at transfers
// where they are not to be counted; nil where it finds none or the context
// ends.
func (g *greedy) cut(ctx context.Context, limit float64, transfers bool) []int {
	for k := range g.far {
		for i := range g.far[k] {
			g.far[k][i] = -1
		}
	}
	for s := range g.t.count {
		if s%1024 == 0 && ctx.Err() != nil {
			return nil
		}
		g.reach[s] = 0
		for k, stride := range g.t.stride {
			if g.t.used[s][k] == 0 {
				continue
			}
			if to := g.furthest(ctx, g.reach[s-stride], k, limit, transfers); to >= g.reach[s] {
				g.reach[s], g.from[s] = to, int8(k)
			}
		}
		if int(g.reach[s]) == len(g.items) {
			return g.places(s)
		}
	}
	return nil
}

// furthest is the end of the longest stretch from a place that a device takes.
func (g *greedy) furthest(ctx context.Context, at int32, k int, limit float64, transfers bool) int32 {
	if to := g.far[k][at]; to >= 0 {
		return to
	}
	i, end := int(at), g.barred[k][at]
	n := sort.Search(end-i, func(n int) bool {
		to := i + n + 1
		return g.times[k][to]-g.times[k][i] > limit || g.sizes[to]-g.sizes[i] > g.room[k]
	})
	to := i + n
	if transfers {
		to = g.scan(ctx, i, to, k, limit)
	}
	g.far[k][at] = int32(to)
	return int32(to)
}

// scan is the last place up to end at which a stretch from i, with what
// crosses its edges, is within the limit. Sums are taken item by item, for
// those of prefixes round.
func (g *greedy) scan(ctx context.Context, i, end, k int, limit float64) int {
	var u usage
	to, at := i, i
	for ; at < end; at++ {
		g.steps++
		if g.steps%1024 == 0 && ctx.Err() != nil {
			break
		}
		v := g.items[at]
		u.time[k] += g.time[v*len(g.kinds)+k]
		u.size += g.size[v]
		g.push(int32(v), &u)
		if load, _ := g.load(&u, k); load <= limit && u.size <= g.room[k] {
			to = at + 1
		}
	}
	for ; at > i; at-- {
		g.pop(int32(g.items[at-1]))
	}
	return to
}

// places follows a state's devices back.
func (g *greedy) places(s int) []int {
	device := make([]int32, len(g.items))
	for end := int(g.reach[s]); s > 0; {
		k := int(g.from[s])
		s -= g.t.stride[k]
		d := g.t.used[s][k]
		for i := range k {
			d += g.o.Problem.Kinds[i].Count
		}
		for ; end > int(g.reach[s]); end-- {
			device[g.items[end-1]] = int32(d)
		}
	}
	return g.o.Places(device)
}
