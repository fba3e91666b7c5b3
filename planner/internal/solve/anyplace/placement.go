package anyplace

import "github.com/devmap-dev/devmap/planner/internal/solve/netlist"

// placement is an assignment with the loads it makes, kept up to date move by
// move.
type placement struct {
	*netlist.Netlist
	kind  []int   // of each device
	place []int32 // device of each item
	// held counts a wire's members on each device: wire*devices + device.
	held        []int32
	load, bytes []float64
	devices     int
	// wires are what a move asks of the netlist's, in one piece: those of an item are
	// of[first[item]:first[item+1]].
	wires     []flatWire
	of, first []int32
}

type flatWire struct {
	cost    float64
	members int32
}

func (placed *placement) flatten() {
	for _, wire := range placed.Wires {
		placed.wires = append(placed.wires, flatWire{wire.Cost, int32(len(wire.Members))})
	}
	placed.first = append(placed.first, 0)
	for _, wires := range placed.WiresOf {
		placed.of = append(placed.of, wires...)
		placed.first = append(placed.first, int32(len(placed.of)))
	}
}

// touching are the wires of an item.
func (placed *placement) touching(item int32) []int32 {
	return placed.of[placed.first[item]:placed.first[item+1]]
}

func newPlacement(nets *netlist.Netlist, place []int32) *placement {
	placed := &placement{Netlist: nets, kind: nets.KindOf()}
	placed.devices = len(placed.kind)
	placed.held = make([]int32, len(nets.Wires)*placed.devices)
	placed.load = make([]float64, placed.devices)
	placed.bytes = make([]float64, placed.devices)
	placed.place = make([]int32, len(place))
	placed.flatten()
	placed.reset(place)
	return placed
}

// reset takes another assignment and adds everything up anew.
func (placed *placement) reset(place []int32) {
	copy(placed.place, place)
	clear(placed.held)
	clear(placed.load)
	clear(placed.bytes)
	for item, device := range placed.place {
		placed.load[device] += placed.Time[placed.kind[device]][item]
		placed.bytes[device] += placed.Size[item]
		for _, wire := range placed.WiresOf[item] {
			placed.held[int(wire)*placed.devices+int(device)]++
		}
	}
	for wire := range placed.Wires {
		for device := range placed.devices {
			if count := int(placed.held[wire*placed.devices+device]); count > 0 && count < len(placed.Wires[wire].Members) && !placed.Free[placed.kind[device]] {
				placed.load[device] += placed.Wires[wire].Cost
			}
		}
	}
}

// change is what the loads of two devices gain when item moves from one to
// the other. A wire's other devices pay as before: they hold a part of it.
func (placed *placement) change(item, from, to int32) (dFrom, dTo float64) {
	wiresFrom, wiresTo := 0.0, 0.0
	for _, wire := range placed.touching(item) {
		own, at := &placed.wires[wire], int(wire)*placed.devices
		if here := placed.held[at+int(from)]; here == own.members {
			wiresFrom += own.cost
		} else if here == 1 {
			wiresFrom -= own.cost
		}
		if there := placed.held[at+int(to)]; there == 0 {
			wiresTo += own.cost
		} else if there == own.members-1 {
			wiresTo -= own.cost
		}
	}
	kf, kt := placed.kind[from], placed.kind[to]
	if placed.Free[kf] {
		wiresFrom = 0
	}
	if placed.Free[kt] {
		wiresTo = 0
	}
	return wiresFrom - placed.Time[kf][item], wiresTo + placed.Time[kt][item]
}

// move moves an item.
func (placed *placement) move(item, to int32) {
	from := placed.place[item]
	dFrom, dTo := placed.change(item, from, to)
	placed.carry(item, from, to, dFrom, dTo)
}

// carry carries out a change.
func (placed *placement) carry(item, from, to int32, dFrom, dTo float64) {
	placed.load[from] += dFrom
	placed.load[to] += dTo
	placed.bytes[from] -= placed.Size[item]
	placed.bytes[to] += placed.Size[item]
	placed.place[item] = to
	for _, wire := range placed.touching(item) {
		at := int(wire) * placed.devices
		placed.held[at+int(from)]--
		placed.held[at+int(to)]++
	}
}

// largest is the largest load; fits tells whether every capacity holds.
func (placed *placement) largest() (load float64, fits bool) {
	fits = true
	for device := range placed.load {
		load = max(load, placed.load[device])
		fits = fits && placed.bytes[device] <= placed.Capacity[placed.kind[device]]
	}
	return load, fits
}
