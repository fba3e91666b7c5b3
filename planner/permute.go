package planner

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// permuted is the problem with device order[d] as its device d, which is also
// its rank: what a rank holds of the communication library goes by the order.
func (p *Problem) permuted(order []int) *Problem {
	q, at := *p, make([]int, len(order))
	topo := &costmodel.Topology{}
	for d, old := range order {
		topo.Devices = append(topo.Devices, p.Topology.Devices[old])
		at[old] = d
	}
	for _, l := range p.Topology.Links {
		l.From, l.To = at[l.From], at[l.To]
		topo.Links = append(topo.Links, l)
	}
	q.Topology = topo
	q.Pins = slices.Clone(p.Pins)
	for i, pin := range q.Pins {
		if pin.Device >= 0 && pin.Device < len(at) {
			q.Pins[i].Device = at[pin.Device]
		}
	}
	return &q
}

// restored is a map of the permuted problem in the devices of the problem.
func restored(m devicemap.Map, order []int) devicemap.Map {
	out := slices.Clone(m)
	for u, d := range out {
		if d >= 0 {
			out[u] = devicemap.Device(order[d])
		}
	}
	return out
}

// orders are the orders of the devices that differ where devices of a class
// are alike, the one by number first; nil where there are more than most.
func orders(classes [][]int, most int) [][]int {
	var out [][]int
	total := 0
	for _, c := range classes {
		total += len(c)
	}
	used, order := make([]int, len(classes)), make([]int, 0, total)
	var extend func()
	extend = func() {
		if len(out) > most {
			return
		}
		if len(order) == total {
			out = append(out, slices.Clone(order))
			return
		}
		for c := range classes {
			if used[c] == len(classes[c]) {
				continue
			}
			order = append(order, classes[c][used[c]])
			used[c]++
			extend()
			used[c]--
			order = order[:len(order)-1]
		}
	}
	extend()
	if len(out) > most {
		return nil
	}
	slices.SortStableFunc(out, slices.Compare)
	return out
}
