package anyplace

// scope is what steps may do. An empty one lets all items go anywhere.
type scope struct {
	items   []int32 // that move; nil: all
	devices []int32 // that they move between; nil: all
	allowed []bool  // tells these
	// one and two are the devices between which an item moves; nil: it may go anywhere.
	one, two []int32
}

// pick is an item that may move.
func (anneal *annealer) pick() int32 {
	if items := anneal.scope.items; items != nil {
		return items[anneal.rng.IntN(len(items))]
	}
	return int32(anneal.rng.IntN(len(anneal.place)))
}

// device is any that items may move to.
func (anneal *annealer) device() int32 {
	if devices := anneal.scope.devices; devices != nil {
		return devices[anneal.rng.IntN(len(devices))]
	}
	return int32(anneal.rng.IntN(anneal.devices))
}

// allows tells whether items may move to a device.
func (scope *scope) allows(device int32) bool { return scope.devices == nil || scope.allowed[device] }

// opposite is the other of an item's two devices.
func (scope *scope) opposite(item, at int32) int32 {
	if at == scope.one[item] {
		return scope.two[item]
	}
	return scope.one[item]
}

// together tells whether an item may go where another of its device goes.
func (scope *scope) together(item, other, at int32) bool {
	return scope.one == nil || scope.opposite(item, at) == scope.opposite(other, at)
}

// across tries to move an item, or some that hang together, to the other of their two
// devices.
func (anneal *annealer) across(temperature float64) {
	item := anneal.pick()
	to := anneal.scope.opposite(item, anneal.place[item])
	if anneal.rng.IntN(4) > 0 {
		anneal.try([]int32{item}, to, temperature)
		return
	}
	anneal.grow(item, 2+anneal.rng.IntN(30))
	anneal.try(anneal.chunk, to, temperature)
}
