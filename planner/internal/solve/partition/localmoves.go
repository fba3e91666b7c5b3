package partition

import "math"

// neighbour is the device of an item that shares a wire with v.
func (a *annealer) neighbour(v int32) int32 {
	if n := len(a.at[v]); n > 0 {
		members := a.wires[a.at[v][a.rng.IntN(n)]].members
		if d := a.place[members[a.rng.IntN(len(members))]]; d != a.place[v] {
			return d
		}
	}
	return int32(a.rng.IntN(a.devices))
}

// grow collects a connected chunk of the items of v's device.
func (a *annealer) grow(v int32, size int) {
	a.stamp++
	a.chunk = append(a.chunk[:0], v)
	a.mark[v] = a.stamp
	for i := 0; i < len(a.chunk) && len(a.chunk) < size; i++ {
		for _, w := range a.at[a.chunk[i]] {
			for _, u := range a.wires[w].members {
				if a.mark[u] != a.stamp && a.place[u] == a.place[v] && len(a.chunk) < size {
					a.mark[u] = a.stamp
					a.chunk = append(a.chunk, u)
				}
			}
		}
	}
}

// try moves items of one device to another, and back if that is refused.
func (a *annealer) try(items []int32, to int32, temperature float64) {
	from := a.place[items[0]]
	if from == to {
		return
	}
	if len(items) == 1 {
		v := items[0]
		dFrom, dTo := a.change(v, from, to)
		if math.IsInf(dTo, 1) || !a.accept(from, to, dFrom, dTo, a.size[v], temperature) {
			return
		}
		a.move(v, to)
		a.settle(from, to)
		return
	}
	loadFrom, loadTo, bytes := a.load[from], a.load[to], 0.0
	for _, v := range items {
		if math.IsInf(a.time[a.kind[to]][v], 1) {
			return
		}
		bytes += a.size[v]
	}
	for _, v := range items {
		a.move(v, to)
	}
	dFrom, dTo := a.load[from]-loadFrom, a.load[to]-loadTo
	a.load[from], a.load[to] = loadFrom, loadTo
	a.bytes[from] += bytes
	a.bytes[to] -= bytes
	ok := a.accept(from, to, dFrom, dTo, bytes, temperature)
	a.load[from], a.load[to] = loadFrom+dFrom, loadTo+dTo
	a.bytes[from] -= bytes
	a.bytes[to] += bytes
	if ok {
		a.settle(from, to)
		return
	}
	for _, v := range items {
		a.move(v, from)
	}
}

// swap exchanges two items.
func (a *annealer) swap(v, u int32, temperature float64) {
	from, to := a.place[v], a.place[u]
	if from == to || math.IsInf(a.time[a.kind[to]][v], 1) || math.IsInf(a.time[a.kind[from]][u], 1) {
		return
	}
	before := a.energies[from] + a.energies[to]
	a.move(v, to)
	a.move(u, from)
	after := a.energy(from, a.load[from], a.bytes[from]) + a.energy(to, a.load[to], a.bytes[to])
	if after <= before || a.rng.Float64() < math.Exp((before-after)/temperature) {
		a.settle(from, to)
		return
	}
	a.move(u, to)
	a.move(v, from)
}

func (a *annealer) accept(from, to int32, dFrom, dTo, bytes, temperature float64) bool {
	before := a.energies[from] + a.energies[to]
	after := a.energy(from, a.load[from]+dFrom, a.bytes[from]-bytes) + a.energy(to, a.load[to]+dTo, a.bytes[to]+bytes)
	return after <= before || a.rng.Float64() < math.Exp((before-after)/temperature)
}

// settle takes over the loads of two devices after a move.
func (a *annealer) settle(from, to int32) {
	a.energies[from] = a.energy(from, a.load[from], a.bytes[from])
	a.energies[to] = a.energy(to, a.load[to], a.bytes[to])
	a.note()
}
