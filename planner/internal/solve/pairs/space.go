package pairs

// space is where the bytes on the first device may be after a step: what is on the
// second must fit it as well.
type space struct {
	bound    bool    // bytes bind at all
	one, two float64 // the first device's room, and that which the second has for the items
	// least are on the first whatever becomes of the items, total with all items so far.
	least, total     float64
	low, high, scale float64
}

// finest is how many cells of bytes there are where bytes bind.
const finest = 8

func newSpace(items []int32, pair *Pair) space {
	all, least := pair.One.Bytes+pair.Two.Bytes, pair.One.Bytes
	for _, item := range items {
		all += pair.Size[item]
	}
	return space{
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
