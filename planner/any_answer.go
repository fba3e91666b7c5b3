package planner

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// solution is the best map found, or the contiguous one where it is as good.
func (a *anySearch) solution(start *Solution) *Solution {
	p := a.sc.p
	m := a.mapOf()
	if start != nil && !a.better(m, start.Map) {
		m = start.Map
	}
	sol := &Solution{Map: m, Devices: devicemap.Predict(p.Costs, p.Topology, m), Probes: a.targets, Method: a.method(start)}
	sol.Warnings = append(sol.Warnings, p.Costs.Warnings...)
	for d := range sol.Devices {
		if share := sol.Devices[d].Share(); share > sol.Value {
			sol.Value, sol.Bottleneck = share, d
		}
	}
	sol.Bounds = a.bounds()
	for _, b := range sol.Bounds {
		if b.Value > sol.LowerBound {
			sol.LowerBound, sol.Bound = b.Value, b.Name
		}
	}
	switch {
	case sol.LowerBound >= sol.Value*(1-rounding):
		sol.LowerBound, sol.Status = sol.Value, Optimal
	case a.stopped():
		sol.Status = LimitReached
	default:
		sol.Status = Feasible
	}
	if sent := p.sentNote(m, start); sent != "" {
		sol.Warnings = append(sol.Warnings, sent)
	}
	return sol
}

// mapOf is the best map, unit by unit.
func (a *anySearch) mapOf() devicemap.Map {
	if a.best == nil {
		return nil
	}
	a.load(a.best)
	m := a.sc.mapOf(a.best)
	a.tidy(m)
	a.sc.relabel(m)
	return m
}

// method says how the map was found, and why so.
func (a *anySearch) method(start *Solution) string {
	from := "from the contiguous optimum"
	if start == nil {
		from = "from a greedy map (the pins leave no contiguous one)"
	}
	if a.sc.tooLarge {
		return "contiguous search: the model and the devices are too many for a search of any assignment"
	}
	s := fmt.Sprintf("any assignment: local search %s (units moved and swapped), then branch and bound over the counts of %d kinds of units", from, len(a.sc.classes))
	switch {
	case a.proved:
		return s + ", which refuted every smaller share"
	case a.stopped():
		return s + ", which ran out of time"
	}
	return s + ", not needed: the bound is met"
}

// sentNote says what a map that is not contiguous sends more than the
// contiguous one.
func (p *Problem) sentNote(m devicemap.Map, start *Solution) string {
	if p.Contiguous(m) || p.Costs.Workload.Mode == costmodel.Load {
		return ""
	}
	s := fmt.Sprintf("not one run of layers a device: %v cross between devices in a step", costmodel.Bytes(p.Sent(m)))
	if start != nil {
		s += fmt.Sprintf(", %v under the best contiguous map (largest share %.2f%%)", costmodel.Bytes(p.Sent(start.Map)), 100*start.Value)
	}
	return s
}
