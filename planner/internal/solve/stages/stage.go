package stages

import "math/bits"

// cross works out what a node adds to the transfers of a stage that ends where
// the upper set does. It is the same in every such stage: what the node reads
// is outside when it joins, and what reads it is inside where the upper set
// holds it.
func (q *probe) cross(upper int) {
	if !q.w.transfers {
		return
	}
	for v := range q.delta {
		d := 0.0
		for _, a := range q.w.in[v] {
			d += a.receive
		}
		for _, a := range q.w.out[v] {
			if q.f.has(upper, a.node) {
				d -= a.receive
			} else {
				d += a.send
			}
		}
		q.delta[v] = d
	}
}

// sent is what a node adds to what a set sends out when it joins: nothing that
// the set holds reads it yet, and it reads nothing from outside.
func (w *web) sent(v int) float64 {
	d := 0.0
	for _, a := range w.out[v] {
		d += a.send
	}
	for _, a := range w.in[v] {
		d -= a.send
	}
	return d
}

// allowed judges the stage between two sets, memory and time together, and
// notes when it would be.
func (q *probe) allowed(upper, lower int, transfers float64) bool {
	if !q.room(upper, lower) {
		return false
	}
	time := q.fastest[upper] - q.fastest[lower] + transfers
	limit := q.limit + rounding*(q.fastest[0]+time)
	if time > limit {
		q.next = min(q.next, time)
		return false
	}
	need := q.fast[upper] - q.fast[lower] - q.capacity*(1+rounding)
	if !(need > 0) {
		return true
	}
	k := knapsack{view: q.view, member: func(v int) bool { return q.f.has(upper, v) && !q.f.has(lower, v) }}
	low, high := k.relax(need)
	if time+low <= limit && time+high > limit {
		low, high = q.exact(&k, upper, lower, need)
	}
	if time+low > limit {
		q.next = min(q.next, time+low)
		return false
	}
	if time+high > limit {
		q.open = true
	}
	return true
}

// exact asks the whole knapsack, once.
func (q *probe) exact(k *knapsack, upper, lower int, need float64) (low, high float64) {
	key := stageKey{int32(upper), int32(lower), int32(q.y)}
	known, ok := q.solved[key]
	if !ok {
		known.lower, known.upper, _ = k.solve(need)
		q.solved[key] = known
	}
	return known.lower, known.upper
}

// nodes of the difference of two sets, ascending.
func (f *family) nodes(upper, lower int) []int {
	var nodes []int
	for k, word := range f.set(upper) {
		for word &^= f.set(lower)[k]; word != 0; word &= word - 1 {
			nodes = append(nodes, 64*k+bits.TrailingZeros64(word))
		}
	}
	return nodes
}

// pipeline reads the answer of a probe that reached the empty set, with the
// best choices of every stage.
func (q *probe) pipeline() (stage, choice []int) {
	stage, choice = make([]int, len(q.w.order)), make([]int, len(q.w.order))
	for at, s := q.f.empty, 0; at != 0; s++ {
		upper, y := int(q.after[at]), int(q.level[at])
		nodes := q.f.nodes(upper, at)
		v := q.search.view(y)
		need := -q.capacity * (1 + rounding)
		for _, n := range nodes {
			_, m := v.nodes[n].fastest()
			need += m
		}
		inside := make(map[int]bool, len(nodes))
		for _, n := range nodes {
			inside[n] = true
		}
		k := knapsack{view: v, member: func(n int) bool { return inside[n] }}
		_, _, option := k.solve(need)
		for _, n := range nodes {
			stage[n], choice[n] = s, v.nodes[n].choice[option[n]]
		}
		at = upper
	}
	return stage, choice
}
