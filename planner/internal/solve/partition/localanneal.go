package partition

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
	if c := a.capacity[a.kind[d]]; bytes > c {
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
