package planner

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/anymemory"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Alone names the unit, or the units that share a parameter, which by itself
// sets the largest share: the bottleneck device holds nothing else of weight
// and the bound is the largest unit. Empty where it is not so.
func (s *Solution) Alone(p *Problem) string {
	if s.Bound != string(chain.BoundUnit) || s.Status != Optimal || len(s.Devices) < 2 {
		return ""
	}
	var names []string
	for u, d := range s.Map {
		if int(d) == s.Bottleneck && timeline.Of(&p.Costs.Units[u]).Peak(timeline.ResidentOn(p.Costs, -1, &p.Topology.Devices[d], false)) > 0 {
			names = append(names, p.Graph.Units[u].Name)
		}
	}
	const most = 4
	if len(names) == 0 || len(names) > most {
		return ""
	}
	return strings.Join(names, " + ")
}

// Arguments are the lower bounds of the largest share that were worked out,
// those that hold for any assignment of units among them. It works them out
// anew for a contiguous map.
func (s *Solution) Arguments(p *Problem) []BoundValue {
	if traits := p.Costs.Workload.Strategy.Traits(); s.Bounds != nil || s.Objective == Time || s.Offloaded != nil || traits.Staged || traits.Replicated {
		return s.Bounds
	}
	in, err := p.resolve()
	if err != nil {
		return nil
	}
	out, err := anymemory.Arguments(in)
	if err != nil {
		return nil
	}
	for i := range out {
		if out[i].Name == s.Bound && out[i].Value < s.LowerBound { // the form of the map allows more
			out[i].Value = s.LowerBound
		}
	}
	if s.Bound == "search" {
		out = append(out, BoundValue{Name: s.Bound, Value: s.LowerBound, What: "the largest share below which no contiguous map is"})
	}
	return out
}
