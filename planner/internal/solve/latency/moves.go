package latency

// propose makes one random change of an assignment around a unit. Nothing that
// it does need keep the rules: what breaks one is taken back.
func (search *search) propose(unit int32) {
	switch draw := search.random.IntN(100); {
	case draw < 35:
		search.move(unit, search.target(unit))
	case draw < 70:
		search.part(unit)
	case draw < 80:
		search.swap(unit)
	case draw < 88:
		search.merge(unit)
	case draw < 94:
		search.exchange(unit)
	default:
		search.fill(unit)
	}
}

// target is where a unit may go: the call of a neighbour mostly, else one
// drawn, or the CPUs.
func (search *search) target(unit int32) int32 {
	draw := search.random.IntN(20)
	above, below := search.above[unit], search.below[unit]
	switch {
	case draw < 16 && len(above)+len(below) > 0:
		at := search.random.IntN(len(above) + len(below))
		if at < len(above) {
			return search.slot[above[at]]
		}
		return search.slot[below[at-len(above)]]
	case draw < 18 || search.slots == 0:
		return OnCPU
	}
	return int32(search.random.IntN(search.slots))
}

// part moves what a unit's call has up to it, or from it on, somewhere else:
// both halves of a contiguous set that is cut so are contiguous.
func (search *search) part(unit int32) {
	own := search.slot[unit]
	next := search.above
	if search.random.IntN(2) == 0 {
		next = search.below
	}
	search.reach(unit, own, next)
	// It goes where the last of them has a neighbour.
	target := search.target(search.chosen[search.random.IntN(len(search.chosen))])
	if target == own {
		target = search.target(search.chosen[len(search.chosen)-1])
	}
	for _, one := range search.chosen {
		search.move(one, target)
	}
}

// reach chooses a unit and all that lie in its call along the edges given.
func (search *search) reach(unit, own int32, next [][]int32) {
	search.chosen = append(search.chosen[:0], unit)
	search.marks[unit] = true
	for at := 0; at < len(search.chosen); at++ {
		for _, other := range next[search.chosen[at]] {
			if !search.marks[other] && search.slot[other] == own {
				search.marks[other] = true
				search.chosen = append(search.chosen, other)
			}
		}
	}
	for _, one := range search.chosen {
		search.marks[one] = false
	}
}

// swap exchanges the places of two units.
func (search *search) swap(unit int32) {
	other := int32(search.random.IntN(len(search.slot)))
	own, theirs := search.slot[unit], search.slot[other]
	search.move(unit, theirs)
	search.move(other, own)
}

// merge puts all of a call into another.
func (search *search) merge(unit int32) {
	own, target := search.slot[unit], search.target(unit)
	if own < 0 || own == target {
		return
	}
	for one, slot := range search.slot {
		if slot == own {
			search.move(int32(one), target)
		}
	}
}

// exchange swaps all that two calls have, which orders the calls of one
// accelerator, and finds devices that others fit.
func (search *search) exchange(unit int32) {
	own := search.slot[unit]
	if search.slots < 2 || own < 0 {
		return
	}
	other := int32(search.random.IntN(search.slots))
	for one, slot := range search.slot {
		switch slot {
		case own:
			search.move(int32(one), other)
		case other:
			search.move(int32(one), own)
		}
	}
}

// fill has a unit's call take on what comes behind it, or before it, one unit
// after the other, while it fits: from the CPUs and from other calls.
func (search *search) fill(unit int32) {
	own := search.slot[unit]
	if own < 0 {
		if own = search.empty(); own < 0 {
			return
		}
		search.move(unit, own)
	}
	next := search.below
	if search.random.IntN(2) == 0 {
		next = search.above
	}
	device, most := int(own)/search.calls, 1+search.random.IntN(16)
	search.reach(unit, own, next)
	for at := 0; at < len(search.chosen) && most > 0; at++ {
		for _, other := range next[search.chosen[at]] {
			if search.slot[other] != own && most > 0 && search.fits(device, other, search.held[device]) {
				search.move(other, own)
				search.chosen = append(search.chosen, other)
				most--
			}
		}
	}
}

// empty is a call that has nothing, drawn from a random one on; −1: none.
func (search *search) empty() int32 {
	if search.slots == 0 {
		return OnCPU
	}
	begin := search.random.IntN(search.slots)
	for i := range search.count {
		if slot := (begin + i) % search.slots; search.count[slot] == 0 {
			return int32(slot)
		}
	}
	return OnCPU
}
