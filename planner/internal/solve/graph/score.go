package graph

import "fmt"

// Load is what one device has to do.
type Load struct {
	// Time is the nodes' time, Transfers that of sending and receiving.
	Time, Transfers float64
	Size            float64
}

// Total is the device's time.
func (l Load) Total() float64 { return l.Time + l.Transfers }

// Score judges an assignment, place[node] = device, from the definitions
// alone. It returns the load of each device and the largest, and an error
// where the assignment breaks a rule: a node that cannot run on its device, a
// group that is apart, a capacity exceeded.
func (p *Problem) Score(place []int) (loads []Load, largest float64, err error) {
	if len(place) != len(p.Nodes) {
		return nil, 0, fmt.Errorf("%d places for %d nodes", len(place), len(p.Nodes))
	}
	loads = make([]Load, p.Devices())
	groups := make(map[int]int)
	for v, d := range place {
		if d < 0 || d >= len(loads) {
			return nil, 0, fmt.Errorf("node %q: there is no device %d", p.Nodes[v].Name, d)
		}
		loads[d].Time += p.Nodes[v].Time[p.KindOf(d)]
		loads[d].Size += p.Nodes[v].Size
		if first, known := groups[p.Nodes[v].Group]; known && place[first] != d {
			return nil, 0, fmt.Errorf("nodes %q and %q share a group and not a device", p.Nodes[first].Name, p.Nodes[v].Name)
		} else if !known {
			groups[p.Nodes[v].Group] = v
		}
	}
	p.transfers(place, loads)
	for d := range loads {
		largest = max(largest, loads[d].Total())
		// Sums of fractions may round; sizes in bytes are whole and do not.
		if c := p.Kinds[p.KindOf(d)].Capacity; loads[d].Size > c*(1+1e-12) {
			err = fmt.Errorf("device %d holds %.0f bytes and may hold %.0f", d, loads[d].Size, c)
		}
	}
	return loads, largest, err
}

// transfers adds what crosses between devices: per node once where it is, and
// once on every other device that reads it.
func (p *Problem) transfers(place []int, loads []Load) {
	readers := make([]map[int]bool, len(p.Nodes))
	for _, e := range p.Edges {
		if from, to := place[e[0]], place[e[1]]; from != to {
			if readers[e[0]] == nil {
				readers[e[0]] = make(map[int]bool)
			}
			readers[e[0]][to] = true
		}
	}
	pay := func(d int, t float64) {
		if !p.Kinds[p.KindOf(d)].FreeTransfers {
			loads[d].Transfers += t
		}
	}
	for v, devices := range readers {
		if len(devices) == 0 {
			continue
		}
		pay(place[v], p.Nodes[v].Transfer)
		for d := range devices {
			pay(d, p.Nodes[v].Transfer)
		}
	}
}
