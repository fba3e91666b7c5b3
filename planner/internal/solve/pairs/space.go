package pairs

// space is where the bytes on the first device may be after a step: what is on the
// second must fit it as well.
type space struct {
	bound    bool    // bytes bind at all
	all      float64 // of the items, and what is on the first whatever becomes of them
	one, two float64 // the first device's room, and that which the second has for the items
	// least are on the first whatever becomes of the items, total with all items so far.
	least, total     float64
	low, high, scale float64
}

// rear is the space of the last items of a walk, from its end, all before on one of the
// devices: so many bytes at most.
func (space space) rear() space {
	space.one -= space.least
	space.least, space.total = 0, 0
	return space
}

// finest is how many cells of bytes there are where bytes bind.
const finest = 16

func newSpace(items []int32, pair *Pair) space {
	all, least := pair.One.Bytes+pair.Two.Bytes, pair.One.Bytes
	for _, item := range items {
		all += pair.Size[item]
	}
	return space{
		all:   all - pair.Two.Bytes,
		bound: all > min(pair.One.Room, pair.Two.Room),
		one:   pair.One.Room, two: pair.Two.Room - pair.Two.Bytes, least: least, total: least,
	}
}

// next goes on by an item of a size.
func (space *space) next(size float64) {
	if !space.bound {
		return
	}
	space.total += size
	space.low, space.high = max(space.least, space.total-space.two), min(space.one, space.total)
	space.scale = 0
	if space.high > space.low {
		space.scale = finest / (space.high - space.low) * (1 - 1e-12)
	}
}

// cell is that of so many bytes; −1 where they do not fit.
func (space *space) cell(bytes float64) int {
	switch {
	case !space.bound:
		return 0
	case bytes < space.low || bytes > space.high:
		return -1
	default:
		return min(int((bytes-space.low)*space.scale), finest-1)
	}
}

// cells is how many there are.
func (space *space) cells() int {
	if space.bound {
		return finest
	}
	return 1
}

// fits says that both devices have room where so many bytes of all are on the first.
func (space *space) fits(bytes float64) bool {
	return !space.bound || bytes <= space.one && space.all-bytes <= space.two
}
