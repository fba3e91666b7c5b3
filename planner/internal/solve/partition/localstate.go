package partition

// placement is an assignment with the loads it makes, kept up to date move by
// move.
type placement struct {
	*netlist
	kind  []int   // of each device
	place []int32 // device of each item
	// held counts a wire's members on each device: wire*devices + device.
	held        []int32
	load, bytes []float64
	devices     int
}

func newPlacement(l *netlist, place []int32) *placement {
	s := &placement{netlist: l, kind: l.kindOf()}
	s.devices = len(s.kind)
	s.held = make([]int32, len(l.wires)*s.devices)
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
		s.load[d] += s.time[s.kind[d]][v]
		s.bytes[d] += s.size[v]
		for _, w := range s.at[v] {
			s.held[int(w)*s.devices+int(d)]++
		}
	}
	for w := range s.wires {
		for d := range s.devices {
			if n := int(s.held[w*s.devices+d]); n > 0 && n < len(s.wires[w].members) && !s.free[s.kind[d]] {
				s.load[d] += s.wires[w].cost
			}
		}
	}
}

// change is what the loads of two devices gain when item v moves from one to
// the other. A wire's other devices pay as before: they hold a part of it.
func (s *placement) change(v, from, to int32) (dFrom, dTo float64) {
	wiresFrom, wiresTo := 0.0, 0.0
	for _, w := range s.at[v] {
		n := int32(len(s.wires[w].members))
		held := s.held[int(w)*s.devices : int(w+1)*s.devices]
		switch held[from] {
		case n:
			wiresFrom += s.wires[w].cost
		case 1:
			wiresFrom -= s.wires[w].cost
		default:
		}
		switch held[to] {
		case 0:
			wiresTo += s.wires[w].cost
		case n - 1:
			wiresTo -= s.wires[w].cost
		default:
		}
	}
	kf, kt := s.kind[from], s.kind[to]
	if s.free[kf] {
		wiresFrom = 0
	}
	if s.free[kt] {
		wiresTo = 0
	}
	return wiresFrom - s.time[kf][v], wiresTo + s.time[kt][v]
}

// move carries out a change.
func (s *placement) move(v, to int32) {
	from := s.place[v]
	dFrom, dTo := s.change(v, from, to)
	s.load[from] += dFrom
	s.load[to] += dTo
	s.bytes[from] -= s.size[v]
	s.bytes[to] += s.size[v]
	s.place[v] = to
	for _, w := range s.at[v] {
		s.held[int(w)*s.devices+int(from)]--
		s.held[int(w)*s.devices+int(to)]++
	}
}

// largest is the largest load; fits tells whether every capacity holds.
func (s *placement) largest() (load float64, fits bool) {
	fits = true
	for d := range s.load {
		load = max(load, s.load[d])
		fits = fits && s.bytes[d] <= s.capacity[s.kind[d]]
	}
	return load, fits
}
