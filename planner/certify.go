package planner

import (
	"fmt"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// FaultError is an answer that fails its own check: a fault of ours.
type FaultError = certificate.FaultError

// certify is the end of every answer: its map is checked, its value worked out
// by the plain form (the walk, or costmodel's StepSeconds), which shares
// nothing with the solvers but the table, and the claim held against it. A
// difference is a fault of ours, never the user's, and no plan is made of it.
func (p *Problem) certify(sol *Solution, claim certificate.Claim) error {
	if sol.Map != nil {
		sol.Devices = devicemap.Predict(p.Costs, p.Topology, sol.Map)
		for _, f := range devicemap.CheckMap(p.Graph, p.Costs, p.Topology, sol.Map).Faults {
			if f.Kind != devicemap.DoesNotFit || sol.Objective == Time {
				return fmt.Errorf("planner: %w", &FaultError{Msg: fmt.Sprintf("the solver's map fails the check: %s", f)})
			}
		}
	} else {
		devices, err := devicemap.PredictReplicas(p.Costs, p.Topology)
		if err != nil {
			return err
		}
		sol.Devices = devices
	}
	sol.Bottleneck = 0
	for d := range sol.Devices {
		if sol.Devices[d].Share() > sol.Devices[sol.Bottleneck].Share() {
			sol.Bottleneck = d
		}
	}
	value := sol.LargestShare()
	if sol.Objective == Time {
		value = *devicemap.StepSeconds(p.Costs, p.Topology, sol.Map)
	}
	var err error
	if sol.Certificate, err = claim.Certify(value); err != nil {
		return fmt.Errorf("planner: %w", err)
	}
	sol.Even = sol.Even && sol.Status == Optimal
	return nil
}

// LargestShare is the largest share of a budget by the walk, whatever the
// objective.
func (s *Solution) LargestShare() float64 {
	var value float64
	for i := range s.Devices {
		value = max(value, s.Devices[i].Share())
	}
	return value
}
