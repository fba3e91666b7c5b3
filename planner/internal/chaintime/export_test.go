package chaintime

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// The tests of bounds call the solvers' parts here, so that they check each part
// and not only an answer.

// Waiting are the sums of a map at its own waits and at every other of so many
// passes, in seconds.
func Waiting(in *instance.Instance, m devicemap.Map) (own float64, all []float64) {
	t := NewSums(in, steptime.Waits{})
	passes := len(m)
	if in.Trains() {
		passes *= 2
	}
	for micro := range passes + 1 {
		for token := range len(m) + 1 {
			for _, host := range []bool{false, true} {
				all = append(all, t.sumAt(steptime.Waits{Micro: micro, Token: token, Host: host}, m))
			}
		}
	}
	return t.sumOf(m), all
}

// Bounds are the steps that no map at all is below, at a few waits, and the
// update that no slowest device is below, in seconds.
func Bounds(in *instance.Instance) (steps []float64, update float64, err error) {
	n, err := newSequential(context.Background(), in, Method{})
	if err != nil {
		return nil, 0, err
	}
	units := len(in.Costs.Units)
	for _, c := range []steptime.Waits{{}, {Host: true}, {Micro: 2 * units, Token: units, Host: true}, {Micro: units / 2, Token: units / 2}} {
		s := n.searches[0].waiting(newFixedPoint(context.Background(), n.peaks, c))
		steps, update = append(steps, s.secondsOf(s.unconstrained())), s.secondsOf(s.floor())
	}
	return steps, update, nil
}

// OnFewer is the answer where the tables for all devices would be too large.
func OnFewer(ctx context.Context, in *instance.Instance, devices int) (*instance.Answer, error) {
	return onFewer(ctx, in, devices, Method{})
}
