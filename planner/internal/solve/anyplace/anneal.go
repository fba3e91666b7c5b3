package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
)

// annealer searches by simulated annealing (Kirkpatrick, Gelatt and Vecchi,
// Science 1983). Its energy is the sum of a high power of the loads: smooth
// enough that every step towards balance counts, steep enough that the
// largest load counts most.
type annealer struct {
	*placement
	rng *rand.Rand
	// unit is the load that counts as 1; squarings of it make the power.
	unit      float64
	squarings int
	// best is the best assignment that fits, bestLoad its largest load.
	best     []int32
	bestLoad float64
	// energies are those of the devices.
	energies []float64
	mark     []int32
	stamp    int32
	chunk    []int32
}

func newAnnealer(s *placement, rng *rand.Rand) *annealer {
	return &annealer{
		placement: s, rng: rng, squarings: 3, bestLoad: math.Inf(1),
		best: make([]int32, len(s.place)), energies: make([]float64, s.devices), mark: make([]int32, len(s.place)),
	}
}

// energy of a device with that load and those bytes. Bytes over the capacity
// count like ten times the same excess of load, and at least a tenth.
func (a *annealer) energy(d int32, load, bytes float64) float64 {
	x := load / a.unit
	if c := a.Capacity[a.kind[d]]; bytes > c {
		x += 0.1 + 10*(bytes-c)/c
	}
	for range a.squarings {
		x *= x
	}
	return x
}

// note remembers the assignment if it is the best so far.
func (a *annealer) note() {
	if load, fits := a.largest(); fits && load < a.bestLoad*(1-1e-12) {
		a.bestLoad = load
		copy(a.best, a.place)
	}
}

// forget drops the best answer; found tells whether there is one.
func (a *annealer) forget()     { a.bestLoad = math.Inf(1) }
func (a *annealer) found() bool { return !math.IsInf(a.bestLoad, 1) }

// refresh removes what rounding has added to the loads.
func (a *annealer) refresh(place []int32) {
	a.reset(place)
	for d := range a.energies {
		a.energies[d] = a.energy(int32(d), a.load[d], a.bytes[d])
	}
}

// run makes the given number of steps while the temperature falls
// geometrically.
func (a *annealer) run(ctx context.Context, steps int, hot, cold float64) {
	a.refresh(a.place)
	a.note()
	temperature := hot
	const block = 1024
	cool := math.Pow(cold/hot, block/float64(steps))
	for done := 0; done < steps; done += block {
		if ctx.Err() != nil {
			return
		}
		a.refresh(a.place)
		for range block {
			a.step(temperature)
		}
		temperature *= cool
	}
}

func (a *annealer) step(temperature float64) {
	v := int32(a.rng.IntN(len(a.place)))
	switch r := a.rng.IntN(16); {
	case r < 11:
		a.try([]int32{v}, a.neighbour(v), temperature)
	case r < 12:
		a.try([]int32{v}, int32(a.rng.IntN(a.devices)), temperature)
	case r < 14:
		a.swap(v, int32(a.rng.IntN(len(a.place))), temperature)
	default:
		a.grow(v, 2+a.rng.IntN(12))
		a.try(a.chunk, a.neighbour(a.chunk[a.rng.IntN(len(a.chunk))]), temperature)
	}
}

// neighbour is the device of an item that shares a wire with v.
func (a *annealer) neighbour(v int32) int32 {
	if n := len(a.WiresOf[v]); n > 0 {
		members := a.Wires[a.WiresOf[v][a.rng.IntN(n)]].Members
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
		for _, w := range a.WiresOf[a.chunk[i]] {
			for _, u := range a.Wires[w].Members {
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
		if math.IsInf(dTo, 1) || !a.accept(from, to, dFrom, dTo, a.Size[v], temperature) {
			return
		}
		a.move(v, to)
		a.settle(from, to)
		return
	}
	loadFrom, loadTo, bytes := a.load[from], a.load[to], 0.0
	for _, v := range items {
		if math.IsInf(a.Time[a.kind[to]][v], 1) {
			return
		}
		bytes += a.Size[v]
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
	if from == to || math.IsInf(a.Time[a.kind[to]][v], 1) || math.IsInf(a.Time[a.kind[from]][u], 1) {
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
