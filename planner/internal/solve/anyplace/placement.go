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

func newPlacement(l *netlist.Netlist, place []int32) *placement {
	s := &placement{Netlist: l, kind: l.KindOf()}
	s.devices = len(s.kind)
	s.held = make([]int32, len(l.Wires)*s.devices)
	s.load = make([]float64, s.devices)
	s.bytes = make([]float64, s.devices)
	s.place = make([]int32, len(place))
	s.reset(place)
	return s
}

// reset takes another assignment and adds everything up anew.
func (s *placement) reset(place []int32) {
	copy(s.place, place)
	clear(s.held)
	clear(s.load)
	clear(s.bytes)
	for v, d := range s.place {
		s.load[d] += s.Time[s.kind[d]][v]
		s.bytes[d] += s.Size[v]
		for _, w := range s.WiresOf[v] {
			s.held[int(w)*s.devices+int(d)]++
		}
	}
	for w := range s.Wires {
		for d := range s.devices {
			if n := int(s.held[w*s.devices+d]); n > 0 && n < len(s.Wires[w].Members) && !s.Free[s.kind[d]] {
				s.load[d] += s.Wires[w].Cost
			}
		}
	}
}

// change is what the loads of two devices gain when item v moves from one to
// the other. A wire's other devices pay as before: they hold a part of it.
func (s *placement) change(v, from, to int32) (dFrom, dTo float64) {
	wiresFrom, wiresTo := 0.0, 0.0
	for _, w := range s.WiresOf[v] {
		n := int32(len(s.Wires[w].Members))
		held := s.held[int(w)*s.devices : int(w+1)*s.devices]
		switch held[from] {
		case n:
			wiresFrom += s.Wires[w].Cost
		case 1:
			wiresFrom -= s.Wires[w].Cost
		default:
		}
		switch held[to] {
		case 0:
			wiresTo += s.Wires[w].Cost
		case n - 1:
			wiresTo -= s.Wires[w].Cost
		default:
		}
	}
	kf, kt := s.kind[from], s.kind[to]
	if s.Free[kf] {
		wiresFrom = 0
	}
	if s.Free[kt] {
		wiresTo = 0
	}
	return wiresFrom - s.Time[kf][v], wiresTo + s.Time[kt][v]
}

// move carries out a change.
func (s *placement) move(v, to int32) {
	from := s.place[v]
	dFrom, dTo := s.change(v, from, to)
	s.load[from] += dFrom
	s.load[to] += dTo
	s.bytes[from] -= s.Size[v]
	s.bytes[to] += s.Size[v]
	s.place[v] = to
	for _, w := range s.WiresOf[v] {
		s.held[int(w)*s.devices+int(from)]--
		s.held[int(w)*s.devices+int(to)]++
	}
}

// largest is the largest load; fits tells whether every capacity holds.
func (s *placement) largest() (load float64, fits bool) {
	fits = true
	for d := range s.load {
		load = max(load, s.load[d])
		fits = fits && s.bytes[d] <= s.Capacity[s.kind[d]]
	}
	return load, fits
}
