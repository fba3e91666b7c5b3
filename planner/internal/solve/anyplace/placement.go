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
}

func newPlacement(nets *netlist.Netlist, place []int32) *placement {
	placed := &placement{Netlist: nets, kind: nets.KindOf()}
	placed.devices = len(placed.kind)
	placed.held = make([]int32, len(nets.Wires)*placed.devices)
	placed.load = make([]float64, placed.devices)
	placed.bytes = make([]float64, placed.devices)
	placed.place = make([]int32, len(place))
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
	for _, wire := range placed.WiresOf[item] {
		count := int32(len(placed.Wires[wire].Members))
		held := placed.held[int(wire)*placed.devices : int(wire+1)*placed.devices]
		switch held[from] {
		case count:
			wiresFrom += placed.Wires[wire].Cost
		case 1:
			wiresFrom -= placed.Wires[wire].Cost
		default:
		}
		switch held[to] {
		case 0:
			wiresTo += placed.Wires[wire].Cost
		case count - 1:
			wiresTo -= placed.Wires[wire].Cost
		default:
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

// move carries out a change.
func (placed *placement) move(item, to int32) {
	from := placed.place[item]
	dFrom, dTo := placed.change(item, from, to)
	placed.load[from] += dFrom
	placed.load[to] += dTo
	placed.bytes[from] -= placed.Size[item]
	placed.bytes[to] += placed.Size[item]
	placed.place[item] = to
	for _, wire := range placed.WiresOf[item] {
		placed.held[int(wire)*placed.devices+int(from)]--
		placed.held[int(wire)*placed.devices+int(to)]++
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
