package planner

import (
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// replicas is the one placement there is where every GPU runs the whole model:
// what it comes to is its own bound.
func (p *Problem) replicas(o Objective) (*Solution, error) {
	devices, err := devicemap.PredictReplicas(p.Costs, p.Topology)
	if err != nil {
		return nil, err
	}
	s := &Solution{Devices: devices, Even: true, Warnings: p.Costs.Warnings}
	only := s.LargestShare()
	fits := only <= 1
	if o == Time && fits {
		s.Objective, only = Time, *devicemap.StepSeconds(p.Costs, p.Topology, nil)
	}
	if err := p.certify(s, certificate.Claim{Value: only, LowerBound: only, Bound: "every GPU runs the whole model", Rounding: certificate.Exact}); err != nil {
		return nil, err
	}
	if !fits {
		w := &s.Devices[s.Bottleneck]
		return s, &InfeasibleError{
			Best: s, Form: p.form(), Proved: true, Worst: s.Bottleneck, Budget: w.Budget(),
			Needed: w.Predicted.PeakAllocatedBytes + w.Predicted.OverheadBytes,
		}
	}
	return s, nil
}
