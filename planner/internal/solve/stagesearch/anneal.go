package stagesearch

import (
	"context"
	"math"
	"math/rand/v2"
)

// annealer searches by simulated annealing (Kirkpatrick, Gelatt and Vecchi,
// Science 220, 1983) among the placements whose devices stand in a row. Its
// energy is the sum of a high power of the loads: smooth enough that every step
// towards balance counts, steep enough that the largest load counts most.
type annealer struct {
	*placement
	random *rand.PCG
	// unit is the load that counts as 1; squarings of it make the power.
	unit      float64
	squarings int
	// swaps is how many steps in 16 are exchanges.
	swaps int
	// blind: only bytes count, as no placement keeps the capacities yet.
	blind bool
	// energies are those of the devices.
	energies []float64
	// best is the best placement that keeps the capacities, bestLoad its
	// largest load.
	best     []int32
	bestLoad float64
	// group are items that move together, was where they were, touched the
	// devices that gain or lose; mark tells those of the latest stamp.
	group, was, touched []int32
	mark, deviceMark    []int32
	stamp               int32
	// walk looks for what is better in a corridor; made when first needed.
	walk *corridor
}

func newAnnealer(chain *Chain, seed, stream uint64) *annealer {
	return &annealer{
		placement: newPlacement(chain), random: rand.NewPCG(seed, stream), unit: 1, squarings: 3,
		energies: make([]float64, chain.devices), best: make([]int32, chain.items), bestLoad: math.Inf(1),
		mark: make([]int32, chain.items), deviceMark: make([]int32, chain.devices),
	}
}

// below is a random number from 0 to count − 1.
func (anneal *annealer) below(count int) int {
	return int(anneal.random.Uint64() >> 32 * uint64(count) >> 32)
}

// energy of a device with that load and those bytes. Bytes over the capacity
// count like a load that exceeds the aim by the same part, and a fiftieth more,
// on a device with little to do as well: where one device makes the largest load,
// the others would else be over their capacities for nothing.
func (anneal *annealer) energy(device int32, load, bytes float64) float64 {
	capacity := anneal.capacity[device]
	switch {
	case anneal.blind:
		return anneal.power(bytes / capacity)
	case bytes > capacity:
		return anneal.power(load/anneal.unit) + anneal.power(0.02+bytes/capacity) - 1
	default:
		return anneal.power(load / anneal.unit)
	}
}

// power is the energy of a load, as a part of the aim.
func (anneal *annealer) power(scaled float64) float64 {
	for range anneal.squarings {
		scaled *= scaled
	}
	return scaled
}

// refresh adds everything up anew and orders the devices at random, as the
// items allow.
func (anneal *annealer) refresh() {
	anneal.recount()
	anneal.line()
	for device := range anneal.energies {
		anneal.settle(int32(device))
	}
	anneal.note()
}

func (anneal *annealer) settle(device int32) {
	anneal.energies[device] = anneal.energy(device, anneal.load[device], anneal.bytes[device])
}

// note remembers the placement if it is the best so far.
func (anneal *annealer) note() {
	if largest, fits := anneal.largest(); fits && largest < anneal.bestLoad*(1-1e-12) {
		anneal.bestLoad = largest
		copy(anneal.best, anneal.place)
	}
}

func (anneal *annealer) found() bool { return !math.IsInf(anneal.bestLoad, 1) }

// accepts is Metropolis' rule.
func (anneal *annealer) accepts(more, temperature float64) bool {
	if more <= 0 {
		return true
	}
	if more > 30*temperature {
		return false
	}
	return anneal.fraction() < math.Exp(-more/temperature)
}

// fraction is a random number from 0 to 1.
func (anneal *annealer) fraction() float64 { return float64(anneal.random.Uint64()>>11) * 0x1p-53 }

// looks is how many steps are made between two looks at the clock.
const looks = 4096

// run makes some steps from the placement at hand, while the temperature falls
// geometrically and the power rises: a low one finds placements whose transfers
// are few, a high one balances them.
func (anneal *annealer) run(ctx context.Context, steps, squarings int, hot, cold float64) {
	block := max(1024, min(steps/32, len(anneal.held)/8))
	for done := 0; done < steps && ctx.Err() == nil; done += block {
		part := float64(done) / float64(steps)
		anneal.squarings = min(squarings+int(part*rises), max(squarings, highest))
		anneal.refresh()
		if anneal.blind && anneal.found() {
			return
		}
		temperature := hot * math.Pow(cold/hot, part) * float64(int(1)<<anneal.squarings)
		for at := range block {
			if at%looks == looks-1 && ctx.Err() != nil {
				break
			}
			anneal.step(temperature)
		}
	}
	anneal.refresh()
}

// rises is how often the power is squared in a run, up to the highest: 2⁵.
const rises, highest = 4, 5

// pushes is in how many steps of 16 an item whose neighbours hold it goes all the same:
// most items are so, and a group costs many times what one item does.
const pushes = 5

// step tries a move. An item whose neighbours hold it takes those with it that
// are in its way.
func (anneal *annealer) step(temperature float64) {
	item := int32(anneal.below(anneal.items))
	from := anneal.place[item]
	low, high := anneal.window(item)
	here := anneal.rank[from]
	roll := anneal.below(16)
	switch {
	case low == high && roll >= pushes:
		return
	case low == high || roll == 0:
		anneal.push(item, temperature)
		return
	case roll <= anneal.swaps:
		anneal.swap(item, temperature)
		return
	}
	// One of the others in the window, the same chance for each.
	to := low + int32(anneal.below(int(high-low)))
	if to >= here {
		to++
	}
	anneal.try(item, from, anneal.at[to], temperature)
}

// try moves one item where that is accepted.
func (anneal *annealer) try(item, from, to int32, temperature float64) {
	atFrom, atTo := anneal.change(item, from, to)
	if math.IsInf(atTo, 1) {
		return
	}
	after := anneal.energy(from, anneal.load[from]+atFrom, anneal.bytes[from]-anneal.size[item])
	then := anneal.energy(to, anneal.load[to]+atTo, anneal.bytes[to]+anneal.size[item])
	if !anneal.accepts(after+then-anneal.energies[from]-anneal.energies[to], temperature) {
		return
	}
	anneal.move(item, to, atFrom, atTo)
	anneal.energies[from], anneal.energies[to] = after, then
	if anneal.load[to] < anneal.bestLoad && anneal.load[from] < anneal.bestLoad {
		anneal.note()
	}
}
