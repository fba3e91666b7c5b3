package planner

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// looped solves an interleaved pipeline: every way to cut where these are
// few, else by a search for better cuts ([looped.search]).
func (p *Problem) looped(ctx context.Context, l *layout) (*Solution, error) {
	if len(p.Pins) > 0 {
		return nil, &PatternError{"pin", p.Pins[0].Pattern, "runs of an interleaved pipeline go round the devices: pins are for the other schedules"}
	}
	s := l.newLooped()
	best, exact, stopped := s.search(ctx)
	sol := &Solution{Map: s.unitMap(), Probes: s.tried, Warnings: p.Costs.Warnings, Even: exact}
	claim := certificate.Claim{Value: best.most, LowerBound: l.weightBound(), Bound: "weights", Rounding: certificate.Exact, Stopped: stopped}
	if s.floor > claim.LowerBound {
		claim.LowerBound, claim.Bound = s.floor, "largest run"
	}
	if exact { // all cuts were tried
		claim.LowerBound, claim.Bound = best.most, "search"
	}
	if err := p.certify(sol, claim); err != nil {
		return nil, err
	}
	if sol.Value > 1 {
		return sol, p.infeasible(ctx, sol)
	}
	return sol, nil
}

// loopedValue is the largest share that looped reaches.
func (l *layout) loopedValue(ctx context.Context) float64 {
	best, _, _ := l.newLooped().search(ctx)
	return best.most
}

// rank is a device's share.
func (s *looped) rank(d int) float64 {
	p := int(s.schedule.Stages)
	if s.schedule.Chunks == 1 {
		return float64(s.l.stagePeak(d, s.cuts[d], s.cuts[d+1])) / float64(s.l.p.Topology.Devices[d].Budget())
	}
	place := timeline.Rank{Schedule: s.schedule, Index: int64(d)}
	for c := d; c < len(s.cuts)-1; c += p {
		place.Chunks = append(place.Chunks, costmodel.Interval{First: s.l.start[s.cuts[c]], End: s.l.start[s.cuts[c+1]]})
	}
	need := s.l.stages.Peak(place, s.l.device[d].Workspace) + s.l.extra[d]
	return float64(need) / float64(s.l.p.Topology.Devices[d].Budget())
}

func (s *looped) score() score {
	for d := range s.share {
		s.share[d] = s.rank(d)
	}
	return s.sum()
}

// sum is the score of the devices' shares.
func (s *looped) sum() (out score) {
	s.tried++
	for _, share := range s.share {
		out.most = max(out.most, share)
		out.squares += share * share
	}
	return out
}

func (s *looped) unitMap() devicemap.Map {
	m := make(devicemap.Map, len(s.l.order))
	for c := range len(s.cuts) - 1 {
		for _, u := range s.l.order[s.l.start[s.cuts[c]]:s.l.start[s.cuts[c+1]]] {
			m[u] = devicemap.Device(c % int(s.schedule.Stages))
		}
	}
	return m
}
