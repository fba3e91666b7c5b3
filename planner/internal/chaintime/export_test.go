package chaintime

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// The tests of bounds call the solvers' parts here, so that they check each part
// and not only an answer.

// Waiting returns the sums of a map in seconds: at its own waits, and at all waits of so many
// passes.
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

// Bounds returns lower bounds of any map's step at a few waits, and of its slowest device's update,
// in seconds.
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

// OnFewer returns the answer of a search on the first devices only.
func OnFewer(ctx context.Context, in *instance.Instance, devices int) (*instance.Answer, error) {
	return onFewer(ctx, in, devices, Method{})
}
