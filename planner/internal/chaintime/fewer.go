package chaintime

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// These limits bound the tables of a search for the shortest step. An item on a device takes about
// 100 bytes, and a pair of devices 8 bytes for each kind of output.
const (
	maxTimed     = instance.MaxTimed
	maxCrossings = 1 << 26
)

// Fewer returns how many of a device map's devices the search uses.
func Fewer(in *instance.Instance) int {
	outputs := make(map[int64]bool)
	for unit := range in.Timed().Units {
		outputs[in.Timed().Units[unit].Work.Output] = true
	}
	pairs := maxCrossings / max(1, len(outputs))
	return min(len(in.Topology.Devices), maxTimed/max(1, len(in.Timed().Units)), int(math.Sqrt(float64(pairs))))
}

// onFewer searches for a shortest step on the first devices, if tables for all would be too large.
// One device works at a time, so few devices make a short step. Its only bound is every unit on its
// fastest device.
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

// fastest returns a lower bound of every map's step: the sum of all units, each on its fastest
// device.
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
