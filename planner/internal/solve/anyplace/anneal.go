package anyplace

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// annealer searches by simulated annealing (Kirkpatrick, Gelatt and Vecchi,
// Science 1983). Its energy is a norm of the loads, the root of the sum of their high
// powers: smooth enough that every step towards balance counts, steep enough that the
// largest load counts most. The sum itself would be a wall: a device that takes half a
// load more for a step on the way counts 657 times as much under a power of 16.
type annealer struct {
	*placement
	rng *rand.Rand
	// unit is the load that counts as 1; squarings of it make the power.
	unit                float64
	squarings, steepest int
	// best is the best assignment that fits, bestLoad its largest load. Half way through a
	// run it is dropped if it is not below what was known: it is where the run began, or
	// near, and what is better near the end would not be looked for.
	best            []int32
	bestLoad, known float64
	// energies are the devices' powers, total is their sum and norm its root; peak is the
	// highest sum since it was added up anew.
	energies          []float64
	total, norm, peak float64
	mark              []int32
	stamp             int32
	chunk             []int32
	scope             scope
}

func newAnnealer(placed *placement, rng *rand.Rand) *annealer {
	return &annealer{
		placement: placed, rng: rng, squarings: 3, steepest: steepest(placed.devices),
		bestLoad: math.Inf(1), known: math.Inf(1),
		best: make([]int32, len(placed.place)), energies: make([]float64, placed.devices), mark: make([]int32, len(placed.place)),
	}
}

// energy of a device with that load and those bytes. Bytes over the capacity
// count like ten times the same excess of load, and at least a tenth.
func (anneal *annealer) energy(device int32, load, bytes float64) float64 {
	scaled := load / anneal.unit
	if capacity := anneal.Capacity[anneal.kind[device]]; bytes > capacity {
		scaled += 0.1 + 10*(bytes-capacity)/capacity
	}
	return anneal.power(scaled)
}

func (anneal *annealer) power(scaled float64) float64 {
	for range anneal.squarings {
		scaled *= scaled
	}
	return scaled
}

func (anneal *annealer) root(energy float64) float64 {
	for range anneal.squarings {
		energy = math.Sqrt(energy)
	}
	return energy
}

// loadOf is the load that has an energy.
func (anneal *annealer) loadOf(energy float64) float64 { return anneal.root(energy) * anneal.unit }

// note remembers the assignment if it is the best so far.
func (anneal *annealer) note() {
	if load, fits := anneal.largest(); fits && load < anneal.bestLoad*(1-1e-12) {
		anneal.bestLoad = load
		copy(anneal.best, anneal.place)
	}
}

// forget drops the best answer; found tells whether there is one.
func (anneal *annealer) forget()     { anneal.bestLoad = math.Inf(1) }
func (anneal *annealer) found() bool { return !math.IsInf(anneal.bestLoad, 1) }

// refresh removes what rounding has added to the loads.
func (anneal *annealer) refresh(place []int32) {
	anneal.reset(place)
	for device := range anneal.energies {
		anneal.energies[device] = anneal.energy(int32(device), anneal.load[device], anneal.bytes[device])
	}
	anneal.sum()
}

// sum adds the devices' energies up anew.
func (anneal *annealer) sum() {
	anneal.total = graph.Sum(anneal.energies)
	anneal.peak = anneal.total
	anneal.norm = anneal.root(anneal.total)
}

// warmth is a temperature, given as a part of the load, in the norm of even loads: one
// of them changes that by so much less.
func (anneal *annealer) warmth(part float64) float64 {
	power := float64(int(1) << anneal.squarings)
	return part / math.Pow(float64(anneal.devices), 1-1/power)
}

// run makes the given number of steps while the temperature falls
// geometrically: parts of the load.
func (anneal *annealer) run(ctx context.Context, steps int, hot, cold float64) {
	anneal.refresh(anneal.place)
	anneal.note()
	temperature := anneal.warmth(hot)
	const block = 1024
	cool := math.Pow(cold/hot, block/float64(steps))
	for done := 0; done < steps; done += block {
		if ctx.Err() != nil {
			return
		}
		if half := steps / 2; done <= half && done+block > half && !(anneal.bestLoad < anneal.known*(1-1e-12)) {
			anneal.forget()
		}
		anneal.refresh(anneal.place)
		for range block {
			anneal.step(temperature)
		}
		temperature *= cool
	}
}

// rounded is the part of the highest sum below which what was taken off it is rounded
// too much.
const rounded = 1e-6

// settle takes over the loads of two devices after a move.
func (anneal *annealer) settle(from, to int32) {
	before := anneal.energies[from] + anneal.energies[to]
	anneal.energies[from] = anneal.energy(from, anneal.load[from], anneal.bytes[from])
	anneal.energies[to] = anneal.energy(to, anneal.load[to], anneal.bytes[to])
	anneal.total += anneal.energies[from] + anneal.energies[to] - before
	anneal.norm, anneal.peak = anneal.root(anneal.total), max(anneal.peak, anneal.total)
	if !(anneal.total > rounded*anneal.peak) {
		anneal.sum()
	}
	anneal.note()
}

// rises is how often the power is squared while it cools.
const rises = 2

// steepest is how often it is squared in the end: the norm of even loads is above the
// largest by the logarithm of their number over the power, which this makes an eighth or
// less, up to 55 devices. Steeper ones see only the largest load, and leave few devices
// worse.
func steepest(devices int) int {
	return min(high, int(math.Ceil(math.Log2(8*math.Log(float64(max(2, devices)))))))
}

// cool anneals from where it stands, in so many steps; a low power rises meanwhile: it
// finds placements whose transfers are few, a high one balances them. Temperatures are
// parts of the largest load.
func (anneal *annealer) cool(ctx context.Context, largest float64, steps int, way way) {
	const cold = 1e-5
	anneal.unit = largest
	power := min(way.power, anneal.steepest)
	parts := min(rises, anneal.steepest-power) + 1
	if way.level {
		parts = 1
	}
	for part := range parts {
		anneal.squarings = power + part
		from, to := float64(part)/float64(parts), float64(part+1)/float64(parts)
		anneal.run(ctx, steps/parts, way.hot*math.Pow(cold/way.hot, from), way.hot*math.Pow(cold/way.hot, to))
	}
}
