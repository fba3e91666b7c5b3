package stagesearch

// toward adds sets on the way from the boundary's own to that of another
// placement: item by item to all that either has, and to what both have. Down-sets
// are closed under both, so that the best of all choices joins what is good of the
// two (as a crossover does, here the best one).
func (grow *grower) toward(other []int32) {
	grow.along(other, func(item int32) bool { return !grow.in[item] && other[item] < grow.k })
	grow.along(other, func(item int32) bool { return grow.in[item] && other[item] >= grow.k })
}

// farthest bounds the sets on such a way.
const farthest = 48

// along goes on with the items that are wanted, the cheapest first, and when there
// are none with those of the other placement's set.
func (grow *grower) along(other []int32, wanted func(item int32) bool) {
	at, taken := int32(0), make([]int32, 0, farthest)
	for _, want := range []func(int32) bool{wanted, func(item int32) bool { return grow.in[item] != (other[item] < grow.k) }} {
		for len(taken) < farthest {
			item := grow.cheapest(want)
			if item < 0 {
				break
			}
			cut := grow.sets[at].cut + grow.more(item)
			at = grow.append(grown{near{item: item, parent: at}, grow.sets[at].hash ^ grow.key[item], cut, 0})
			grow.cross(item)
			taken = append(taken, item)
		}
	}
	for i := len(taken) - 1; i >= 0; i-- {
		grow.cross(taken[i])
	}
}

// cheapest is the item of those wanted whose way over the boundary costs least; −1:
// none may go.
func (grow *grower) cheapest(want func(item int32) bool) int32 {
	found, least := int32(-1), 0.0
	for item := range int32(grow.items) {
		if !want(item) || !grow.may(item) {
			continue
		}
		if more := grow.more(item); found < 0 || more < least {
			found, least = item, more
		}
	}
	grow.work += grow.items / 8
	return found
}
