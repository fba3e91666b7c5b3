package planner

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// solution is the best map found, or the contiguous one where it is as good.
func (a *anySearch) solution(start *claimed) *claimed {
	p := a.sc.p
	m, value := a.mapOf(), a.value.Float()
	if start != nil && !a.better(m, start.Map) {
		m, value = start.Map, start.claim.Value
	}
	sol := &claimed{
		&Solution{Map: m, Probes: a.targets, Method: a.method(start), Bounds: a.bounds()},
		certificate.Claim{Value: value, Rounding: certificate.Exact, Stopped: a.stopped()},
	}
	sol.Warnings = append(sol.Warnings, p.Costs.Warnings...)
	for _, b := range sol.Bounds {
		if b.Value > sol.claim.LowerBound {
			sol.claim.LowerBound, sol.claim.Bound = b.Value, b.Name
		}
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
func (a *anySearch) method(start *claimed) string {
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
func (p *Problem) sentNote(m devicemap.Map, start *claimed) string {
	if p.Contiguous(m) || p.Costs.Workload.Mode == costmodel.Load {
		return ""
	}
	s := fmt.Sprintf("not one run of layers a device: %v cross between devices in a step", costmodel.Bytes(p.Sent(m)))
	if start != nil {
		s += fmt.Sprintf(", %v under the best contiguous map (largest share %.2f%%)", costmodel.Bytes(p.Sent(start.Map)), 100*start.claim.Value)
	}
	return s
}
