package stagesearch

// placement is an assignment of the items to devices that stand in a row, every
// edge within a device or to a later one, with the loads that it makes, kept up
// to date move by move in a step for each wire of the item that moves.
type placement struct {
	*Chain
	place []int32 // device of each item
	// rank is a device's place in the row, at the device of a place.
	rank, at []int32
	// held counts a wire's members on each device: wire × devices + device.
	held        []int32
	load, bytes []float64
}

func newPlacement(chain *Chain) *placement {
	return &placement{
		Chain: chain, place: make([]int32, chain.items), rank: make([]int32, chain.devices), at: make([]int32, chain.devices),
		held: make([]int32, len(chain.cost)*chain.devices), load: make([]float64, chain.devices), bytes: make([]float64, chain.devices),
	}
}

// recount adds everything up anew, which removes what rounding has added.
func (placed *placement) recount() {
	clear(placed.held)
	clear(placed.load)
	clear(placed.bytes)
	for item, device := range placed.place {
		placed.load[device] += placed.on(int32(item), device)
		placed.bytes[device] += placed.size[item]
		for _, wire := range placed.wires.of(int32(item)) {
			placed.held[int(wire)*placed.devices+int(device)]++
		}
	}
	for wire, members := range placed.members {
		for device, count := range placed.held[wire*placed.devices : (wire+1)*placed.devices] {
			if count > 0 && count < members && !placed.free[device] {
				placed.load[device] += placed.cost[wire]
			}
		}
	}
}

// window are the first and the last place in the row that an item can have
// while the others stay.
func (placed *placement) window(item int32) (low, high int32) {
	high = int32(placed.devices) - 1
	for _, other := range placed.before.of(item) {
		low = max(low, placed.rank[placed.place[other]])
	}
	for _, other := range placed.after.of(item) {
		high = min(high, placed.rank[placed.place[other]])
	}
	return low, high
}

// change is what the loads of two devices gain when an item moves from one to
// the other. A wire's other devices pay as before: they hold a part of it.
func (placed *placement) change(item, from, to int32) (atFrom, atTo float64) {
	wiresFrom, wiresTo := 0.0, 0.0
	for _, wire := range placed.wires.of(item) {
		held := placed.held[int(wire)*placed.devices : int(wire+1)*placed.devices]
		count, cost := placed.members[wire], placed.cost[wire]
		if here := held[from]; here == count {
			wiresFrom += cost
		} else if here == 1 {
			wiresFrom -= cost
		}
		if there := held[to]; there == 0 {
			wiresTo += cost
		} else if there == count-1 {
			wiresTo -= cost
		}
	}
	if placed.free[from] {
		wiresFrom = 0
	}
	if placed.free[to] {
		wiresTo = 0
	}
	return wiresFrom - placed.on(item, from), wiresTo + placed.on(item, to)
}

// move carries out a change.
func (placed *placement) move(item, to int32, atFrom, atTo float64) {
	from := placed.place[item]
	placed.load[from] += atFrom
	placed.load[to] += atTo
	placed.bytes[from] -= placed.size[item]
	placed.bytes[to] += placed.size[item]
	placed.place[item] = to
	for _, wire := range placed.wires.of(item) {
		placed.held[int(wire)*placed.devices+int(from)]--
		placed.held[int(wire)*placed.devices+int(to)]++
	}
}

// put moves an item, whatever it costs.
func (placed *placement) put(item, to int32) {
	if from := placed.place[item]; from != to {
		atFrom, atTo := placed.change(item, from, to)
		placed.move(item, to, atFrom, atTo)
	}
}

// largest is the largest load, where every capacity is kept.
func (placed *placement) largest() (load float64, fits bool) {
	for device, here := range placed.load {
		if placed.bytes[device] > placed.capacity[device] {
			return 0, false
		}
		load = max(load, here)
	}
	return load, true
}
