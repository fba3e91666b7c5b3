package anyplace

import "math"

// step tries a move: of an item to a device that it shares a wire with, or any, an
// exchange of two, or a move of some items that hang together.
func (anneal *annealer) step(temperature float64) {
	if anneal.scope.one != nil {
		anneal.across(temperature)
		return
	}
	item := anneal.pick()
	switch roll := anneal.rng.IntN(16); {
	case roll < 11:
		anneal.try([]int32{item}, anneal.neighbour(item), temperature)
	case roll < 12:
		anneal.try([]int32{item}, anneal.device(), temperature)
	case roll < 14:
		anneal.swap(item, anneal.pick(), temperature)
	default:
		anneal.grow(item, 2+anneal.rng.IntN(12))
		anneal.try(anneal.chunk, anneal.neighbour(anneal.chunk[anneal.rng.IntN(len(anneal.chunk))]), temperature)
	}
}

// neighbour is the device of an item that shares a wire with the one given.
func (anneal *annealer) neighbour(item int32) int32 {
	if count := len(anneal.WiresOf[item]); count > 0 {
		members := anneal.Wires[anneal.WiresOf[item][anneal.rng.IntN(count)]].Members
		device := anneal.place[members[anneal.rng.IntN(len(members))]]
		if device != anneal.place[item] && anneal.scope.allows(device) {
			return device
		}
	}
	return anneal.device()
}

// grow collects a connected chunk of items around one, on its device.
func (anneal *annealer) grow(item int32, size int) {
	at := anneal.place[item]
	anneal.stamp++
	anneal.chunk = append(anneal.chunk[:0], item)
	anneal.mark[item] = anneal.stamp
	for i := 0; i < len(anneal.chunk) && len(anneal.chunk) < size; i++ {
		for _, wire := range anneal.WiresOf[anneal.chunk[i]] {
			for _, other := range anneal.Wires[wire].Members {
				if anneal.mark[other] != anneal.stamp && anneal.place[other] == at && len(anneal.chunk) < size &&
					anneal.scope.together(item, other, at) {
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
		anneal.carry(item, from, to, dFrom, dTo)
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
	never := func(item, device int32) bool { return math.IsInf(anneal.Time[anneal.kind[device]][item], 1) }
	if from == to || never(item, to) || never(other, from) {
		return
	}
	anneal.move(item, to)
	anneal.move(other, from)
	after := anneal.energy(from, anneal.load[from], anneal.bytes[from]) +
		anneal.energy(to, anneal.load[to], anneal.bytes[to])
	if anneal.accepts(after-anneal.energies[from]-anneal.energies[to], temperature) {
		anneal.settle(from, to)
		return
	}
	anneal.move(other, to)
	anneal.move(item, from)
}

func (anneal *annealer) accept(from, to int32, dFrom, dTo, bytes, temperature float64) bool {
	before := anneal.energies[from] + anneal.energies[to]
	after := anneal.energy(from, anneal.load[from]+dFrom, anneal.bytes[from]-bytes) +
		anneal.energy(to, anneal.load[to]+dTo, anneal.bytes[to]+bytes)
	return anneal.accepts(after-before, temperature)
}

// accepts is Metropolis' rule for the norm, asked the other way round: the chance is
// drawn first, and how high the norm may then be.
func (anneal *annealer) accepts(more, temperature float64) bool {
	return more <= 0 || anneal.total+more <= anneal.power(anneal.norm+temperature*anneal.rng.ExpFloat64())
}
