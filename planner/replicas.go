package planner

import "github.com/devmap-dev/devmap/planner/devicemap"

// replicas is the one placement there is where every GPU runs the whole model.
func (p *Problem) replicas() (*Solution, error) {
	s := &Solution{
		Devices: devicemap.PredictReplicas(p.Costs, p.Topology),
		Bound:   "every GPU runs the whole model", Status: Optimal, Even: true, Warnings: p.Costs.Warnings,
	}
	for d := range s.Devices {
		if share := s.Devices[d].Share(); share > s.Value {
			s.Value, s.Bottleneck = share, d
		}
	}
	s.LowerBound = s.Value
	if s.Value > 1 {
		w := &s.Devices[s.Bottleneck]
		return s, &InfeasibleError{
			Best: s, Form: p.form(), Proved: true, Worst: s.Bottleneck, Budget: w.Budget(),
			Needed: w.Predicted.PeakAllocatedBytes + w.Predicted.OverheadBytes,
		}
	}
	return s, nil
}
