// Package replica is the method for workloads in which every GPU runs the whole model (data
// parallelism, sharded or not). There is only one placement, and its value is its bound.
package replica

import (
	"context"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Method implements [instance.Method].
type Method struct{}

// Serves implements [instance.Method].
func (Method) Serves(in *instance.Instance) bool { return in.Replicated() }

// Why implements [instance.Method].
func (Method) Why(*instance.Instance) string {
	return "none: every GPU runs the whole model, so there is one placement"
}

// Solve implements [instance.Method].
func (Method) Solve(_ context.Context, in *instance.Instance, _ instance.Limits, _ *instance.Answer) (*instance.Answer, error) {
	devices := devicemap.Predict(in.Costs, in.Topology, nil)
	value, fits := 0., true
	for i := range devices {
		used := devices[i].Predicted.PeakAllocatedBytes + devices[i].Predicted.OverheadBytes
		value, fits = max(value, devices[i].Share), fits && used <= in.Caps[i]
	}
	if in.Objective == instance.Time {
		if !fits {
			return &instance.Answer{Proved: true}, instance.ErrNone
		}
		value = *devicemap.StepSeconds(in.Timed(), in.Topology, nil)
	}
	return &instance.Answer{
		Claim:  certificate.Claim{Value: value, LowerBound: value, Bound: "every GPU runs the whole model", Rounding: certificate.Exact},
		Proved: true, EvenProved: true,
	}, nil
}
