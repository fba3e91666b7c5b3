package planner

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// Bounds of the tables of a search for the shortest step: items × devices, of
// some 100 bytes, and pairs of devices, of 8 bytes for each kind of output.
const (
	mostTimed     = 1 << 23
	mostCrossings = 1 << 26
)

// fewer is the search for a shortest step where the tables for all devices
// would be too large: on the first of them alone. One device works at a time,
// so that as few as hold the model make a short step. It proves nothing but
// the bound that each unit takes its time on some device.
type fewer struct {
	p       *Problem
	devices int
}

// fewerDevices is how many of a device map's devices are looked at.
func (p *Problem) fewerDevices() int {
	outputs := make(map[int64]bool)
	for u := range p.Costs.Units {
		outputs[p.Costs.Units[u].Work.Output] = true
	}
	pairs := mostCrossings / max(1, len(outputs))
	return min(len(p.Topology.Devices), mostTimed/max(1, len(p.Costs.Units)), int(math.Sqrt(float64(pairs))))
}

// shortest implements timed.
func (s *fewer) shortest(ctx context.Context, caps []int64) (*answer, error) {
	out := &answer{lower: s.p.fastest(), bound: "fastest device", notes: []string{fmt.Sprintf(
		"%d units on %d devices are too many for tables of all: the shortest step was searched on the first %d", len(s.p.Costs.Units), len(caps), s.devices)}}
	q := *s.p
	q.Topology = &costmodel.Topology{Devices: s.p.Topology.Devices[:s.devices]}
	for _, l := range s.p.Topology.Links {
		if max(l.From, l.To) < s.devices {
			q.Topology.Links = append(q.Topology.Links, l)
		}
	}
	if s.devices == 0 || slices.ContainsFunc(s.p.Pins, func(pin Pin) bool { return pin.Device >= s.devices }) {
		return out, errNone
	}
	l, fixed, err := q.layout()
	if err != nil {
		return out, errNone
	}
	solver, err := newNaive(l, fixed)
	if err != nil {
		return nil, err
	}
	found, err := solver.shortest(ctx, caps[:s.devices])
	if err != nil {
		return out, err
	}
	out.m, out.step, out.stopped, out.tried = found.m, found.step, found.stopped, found.tried
	return out, nil
}

// fastest is a step that no map is below: every unit on its fastest device,
// whose work comes in turn.
func (p *Problem) fastest() float64 {
	passes, tokens := steptime.Passes(p.Costs)
	sum, devices := 0., p.unlike()
	for u := range p.Costs.Units {
		least := math.Inf(1)
		for _, d := range devices {
			s := steptime.Unit(p.Costs, p.Topology, d, u)
			least = min(least, passes*(s.Forward+s.Backward)+tokens*s.Token)
		}
		sum += least
	}
	return sum * (1 - tolerance)
}

// unlike is one device of each kind: those of a kind take the same time for
// any unit.
func (p *Problem) unlike() []int {
	known := make(map[costmodel.Device]bool)
	var out []int
	for d, dev := range p.Topology.Devices {
		kind := costmodel.Device{FLOPS: dev.FLOPS, Rates: dev.Rates}
		if !known[kind] {
			known[kind] = true
			out = append(out, d)
		}
	}
	return out
}
