package chaintime

// placedMap is a device map with its cost.
type placedMap struct {
	items  []int // device of each item
	groups []int
	cost   cost  // the time includes the update
	update int64 // of the slowest device
	order  int   // number of cuts to a lower device number
}

func (one *placedMap) less(other *placedMap) bool {
	if one.cost != other.cost {
		return one.cost.less(other.cost)
	}
	return one.order < other.order
}

// simpler reports that a map sends fewer bytes, or as many with fewer cuts.
func (one *placedMap) simpler(other *placedMap) bool {
	x, y := one.cost, other.cost
	x.time, y.time = 0, 0
	return x.less(y)
}
