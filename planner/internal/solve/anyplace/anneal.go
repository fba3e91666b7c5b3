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

func newAnnealer(placed *placement, rng *rand.Rand) *annealer {
	return &annealer{
		placement: placed, rng: rng, squarings: 3, bestLoad: math.Inf(1),
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
	for range anneal.squarings {
		scaled *= scaled
	}
	return scaled
}

// loadOf is the load that has an energy.
func (anneal *annealer) loadOf(energy float64) float64 {
	for range anneal.squarings {
		energy = math.Sqrt(energy)
	}
	return energy * anneal.unit
}

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
}

// run makes the given number of steps while the temperature falls
// geometrically.
func (anneal *annealer) run(ctx context.Context, steps int, hot, cold float64) {
	anneal.refresh(anneal.place)
	anneal.note()
	temperature := hot
	const block = 1024
	cool := math.Pow(cold/hot, block/float64(steps))
	for done := 0; done < steps; done += block {
		if ctx.Err() != nil {
			return
		}
		anneal.refresh(anneal.place)
		for range block {
			anneal.step(temperature)
		}
		temperature *= cool
	}
}

func (anneal *annealer) step(temperature float64) {
	item := int32(anneal.rng.IntN(len(anneal.place)))
	switch roll := anneal.rng.IntN(16); {
	case roll < 11:
		anneal.try([]int32{item}, anneal.neighbour(item), temperature)
	case roll < 12:
		anneal.try([]int32{item}, int32(anneal.rng.IntN(anneal.devices)), temperature)
	case roll < 14:
		anneal.swap(item, int32(anneal.rng.IntN(len(anneal.place))), temperature)
	default:
		anneal.grow(item, 2+anneal.rng.IntN(12))
		anneal.try(anneal.chunk, anneal.neighbour(anneal.chunk[anneal.rng.IntN(len(anneal.chunk))]), temperature)
	}
}

// neighbour is the device of an item that shares a wire with the one given.
func (anneal *annealer) neighbour(item int32) int32 {
	if count := len(anneal.WiresOf[item]); count > 0 {
		members := anneal.Wires[anneal.WiresOf[item][anneal.rng.IntN(count)]].Members
		if device := anneal.place[members[anneal.rng.IntN(len(members))]]; device != anneal.place[item] {
			return device
		}
	}
	return int32(anneal.rng.IntN(anneal.devices))
}

// grow collects a connected chunk of items around one, on its device.
func (anneal *annealer) grow(item int32, size int) {
	anneal.stamp++
	anneal.chunk = append(anneal.chunk[:0], item)
	anneal.mark[item] = anneal.stamp
	for i := 0; i < len(anneal.chunk) && len(anneal.chunk) < size; i++ {
		for _, wire := range anneal.WiresOf[anneal.chunk[i]] {
			for _, other := range anneal.Wires[wire].Members {
				if anneal.mark[other] != anneal.stamp && anneal.place[other] == anneal.place[item] && len(anneal.chunk) < size {
					anneal.mark[other] = anneal.stamp
					anneal.chunk = append(anneal.chunk, other)
				}
			}
		}
	}
}

// try moves items of one device to another, and back if that is refused.
func (anneal *annealer) try(items []int32, to int32, temperature float64) {
	from := anneal.place[items[0]]
	if from == to {
		return
	}
	if len(items) == 1 {
		item := items[0]
		dFrom, dTo := anneal.change(item, from, to)
		if math.IsInf(dTo, 1) || !anneal.accept(from, to, dFrom, dTo, anneal.Size[item], temperature) {
			return
		}
		anneal.move(item, to)
		anneal.settle(from, to)
		return
	}
	loadFrom, loadTo, bytes := anneal.load[from], anneal.load[to], 0.0
	for _, item := range items {
		if math.IsInf(anneal.Time[anneal.kind[to]][item], 1) {
			return
		}
		bytes += anneal.Size[item]
	}
	for _, item := range items {
		anneal.move(item, to)
	}
	dFrom, dTo := anneal.load[from]-loadFrom, anneal.load[to]-loadTo
	anneal.load[from], anneal.load[to] = loadFrom, loadTo
	anneal.bytes[from] += bytes
	anneal.bytes[to] -= bytes
	ok := anneal.accept(from, to, dFrom, dTo, bytes, temperature)
	anneal.load[from], anneal.load[to] = loadFrom+dFrom, loadTo+dTo
	anneal.bytes[from] -= bytes
	anneal.bytes[to] += bytes
	if ok {
		anneal.settle(from, to)
		return
	}
	for _, item := range items {
		anneal.move(item, from)
	}
}

// swap exchanges two items.
func (anneal *annealer) swap(item, other int32, temperature float64) {
	from, to := anneal.place[item], anneal.place[other]
	if from == to || math.IsInf(anneal.Time[anneal.kind[to]][item], 1) || math.IsInf(anneal.Time[anneal.kind[from]][other], 1) {
		return
	}
	before := anneal.energies[from] + anneal.energies[to]
	anneal.move(item, to)
	anneal.move(other, from)
	after := anneal.energy(from, anneal.load[from], anneal.bytes[from]) + anneal.energy(to, anneal.load[to], anneal.bytes[to])
	if after <= before || anneal.rng.Float64() < math.Exp((before-after)/temperature) {
		anneal.settle(from, to)
		return
	}
	anneal.move(other, to)
	anneal.move(item, from)
}

func (anneal *annealer) accept(from, to int32, dFrom, dTo, bytes, temperature float64) bool {
	before := anneal.energies[from] + anneal.energies[to]
	after := anneal.energy(from, anneal.load[from]+dFrom, anneal.bytes[from]-bytes) + anneal.energy(to, anneal.load[to]+dTo, anneal.bytes[to]+bytes)
	return after <= before || anneal.rng.Float64() < math.Exp((before-after)/temperature)
}

// settle takes over the loads of two devices after a move.
func (anneal *annealer) settle(from, to int32) {
	anneal.energies[from] = anneal.energy(from, anneal.load[from], anneal.bytes[from])
	anneal.energies[to] = anneal.energy(to, anneal.load[to], anneal.bytes[to])
	anneal.note()
}

// cool anneals from where it stands, in so many steps; a low power rises meanwhile: it
// finds placements whose transfers are few, a high one balances them.
func (anneal *annealer) cool(ctx context.Context, largest float64, steps int, way way) {
	const cold = 1e-5
	anneal.unit = largest
	parts := high - way.power + 1
	for part := range parts {
		anneal.squarings = way.power + part
		from, to := float64(part)/float64(parts), float64(part+1)/float64(parts)
		scale := float64(int(1) << anneal.squarings) // what a part more of load is as energy
		anneal.run(ctx, steps/parts, scale*way.hot*math.Pow(cold/way.hot, from), scale*way.hot*math.Pow(cold/way.hot, to))
	}
}
