package planner

import (
	"context"
	"math"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
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

// valueOn is the largest share on other devices; +Inf where the constraints
// need more of them.
func (p *Problem) valueOn(ctx context.Context, devices []costmodel.Device) float64 {
	q := *p
	q.Topology = &costmodel.Topology{Devices: devices, Links: p.Topology.Links}
	l, fixed, err := q.layout()
	if err != nil {
		return math.Inf(1)
	}
	if q.piped() && q.schedule().Chunks > 1 {
		return l.loopedValue(ctx)
	}
	r, err := chain.Solve(ctx, l.problem(fixed), chain.Settings{NoSquares: true})
	if err != nil {
		return math.Inf(1)
	}
	return r.Value.Float()
}
