package chaintime

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Bounds of the tables of a search for the shortest step: items × devices, of
// some 100 bytes, and pairs of devices, of 8 bytes for each kind of output.
const (
	maxTimed     = instance.MaxTimed
	maxCrossings = 1 << 26
)

// Fewer is how many of a device map's devices are looked at.
func Fewer(in *instance.Instance) int {
	outputs := make(map[int64]bool)
	for unit := range in.Timed().Units {
		outputs[in.Timed().Units[unit].Work.Output] = true
	}
	pairs := maxCrossings / max(1, len(outputs))
	return min(len(in.Topology.Devices), maxTimed/max(1, len(in.Timed().Units)), int(math.Sqrt(float64(pairs))))
}

// onFewer is the search for a shortest step where the tables for all devices
// would be too large: on the first of them alone. One device works at a time,
// so that as few as hold the model make a short step. It proves nothing but
// the bound that each unit takes its time on some device.
func onFewer(ctx context.Context, in *instance.Instance, devices int, method instance.Method) (*instance.Answer, error) {
	out := instance.NoStep([]string{fmt.Sprintf("%d units on %d devices are too many for tables of all: the shortest step was searched on the first %d",
		len(in.Timed().Units), len(in.Topology.Devices), devices)}, "fastest device")
	out.LowerBound = fastest(in)
	first := in.First(devices)
	if first == nil {
		return out, instance.ErrNone
	}
	if _, err := first.Items(); err != nil {
		return out, instance.ErrNone
	}
	solver, err := newSequential(ctx, first, method)
	if err != nil {
		return nil, err
	}
	if solver == nil {
		out.Stopped = true
		return out, instance.ErrNone
	}
	found, err := solver.shortest(ctx)
	if err != nil {
		return out, err
	}
	out.Map, out.Value, out.Stopped, out.Tried = found.Map, found.Value, found.Stopped, found.Tried
	return out, nil
}

// fastest is a step that no map is below: every unit on its fastest device,
// whose work comes in turn.
func fastest(in *instance.Instance) float64 {
	passes, tokens := in.Passes()
	sum, devices := 0., in.Unlike()
	for unit := range in.Timed().Units {
		least := math.Inf(1)
		for _, device := range devices {
			seconds := steptime.Unit(in.Timed(), in.Topology, device, unit)
			least = min(least, passes*(seconds.Forward+seconds.Backward)+tokens*seconds.Token)
		}
		sum += least
	}
	return sum * (1 - instance.Tolerance)
}
