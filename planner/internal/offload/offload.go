// Package offload finds the units that leave the devices if not all fit, so that the fewest bytes
// are copied in a forward, and places the rest. It tries sets of units in the order of their bytes
// until the rest fits. The order is that of the m best combinations of a knapsack, by a heap
// (Lawler, Management Science 18, 1972).
package offload

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/chainmemory"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Method implements [instance.Method].
type Method struct{ chainmemory.Method }

// Serves implements [instance.Method].
func (Method) Serves(in *instance.Instance) bool {
	return in.Objective != instance.Time && in.Offload != ""
}

// Error says that nothing can be offloaded here.
type Error struct {
	Msg costmodel.Message
	// TooLittle: the tier is too small for the units that would have to leave.
	TooLittle bool
}

// Error implements error.
func (err *Error) Error() string { return err.Words(costmodel.Setting.String) }

// Words returns the message. name formats its settings.
func (err *Error) Words(name func(costmodel.Setting) string) string {
	return name(costmodel.Setting{Field: "offload"}) + ": " + err.Msg.Words(name)
}

// Solve implements [instance.Method], for an instance that does not fit whole. With the error
// [instance.ErrNone], the answer's note says what the devices lack. The answer is proved if they
// lack it with any units offloaded.
func (Method) Solve(ctx context.Context, in *instance.Instance, limits instance.Limits, _ *instance.Answer) (*instance.Answer, error) {
	switch workload := &in.Costs.Workload; {
	case in.Trains():
		return nil, &Error{Msg: costmodel.Messagef("Accelerate offloads for inference: its hooks drop the weights after forward, and backward needs them (%v works)", costmodel.Set("mode", costmodel.Infer))}
	case !workload.Strategy.Traits().Sequential || in.AnyAssignment:
		return nil, &Error{Msg: costmodel.Messagef("units leave a contiguous device map (%v works)", costmodel.Set("strategy", costmodel.DeviceMap))}
	}
	search, err := newSearch(in)
	if err != nil {
		return nil, err
	}
	found, bound := search.run(ctx, limits)
	if found == nil {
		return &instance.Answer{Notes: []string{search.lacking(ctx)}, Proved: search.short()}, instance.ErrNone
	}
	return search.answer(found, bound, ctx.Err() != nil)
}

// place returns the best map of the remaining units. It returns nil if they do not fit, or if no
// unit remains on the device that runs the offloaded units.
func place(ctx context.Context, in *instance.Instance, limits instance.Limits) *instance.Answer {
	items, err := in.Items()
	if err != nil {
		return nil
	}
	answer, err := chainmemory.Place(ctx, items.HoldLeft(0), limits)
	if err != nil || answer.Value > 1 {
		return nil
	}
	for unit, device := range answer.Map {
		if device == 0 && !slices.Contains(in.Offloaded, unit) {
			return answer
		}
	}
	return nil
}

// answer puts the units on their tiers. Their bytes are the first objective. Without a proof that
// the bytes are minimal, another set could leave, so the bound of the share covers any set.
func (state *search) answer(found *left, bound int64, stopped bool) (*instance.Answer, error) {
	in, out := state.in, found.rest
	hostMemory := in.Topology.HostMemoryBytes
	var used int64
	for _, unit := range found.units {
		params := in.Costs.Units[unit].Params
		used += params
		out.Map[unit] = devicemap.CPU
		if in.Offload == instance.Disk && (hostMemory == 0 || used > hostMemory) {
			used -= params
			out.Map[unit] = devicemap.Disk
		}
	}
	if in.Offload == instance.CPU && hostMemory > 0 && used > hostMemory {
		return nil, &Error{TooLittle: true, Msg: costmodel.Messagef("%v would leave, and the host's memory holds %v, so that %v are missing (%v works)",
			costmodel.Bytes(used), costmodel.Bytes(hostMemory), costmodel.Bytes(used-hostMemory), costmodel.Set("offload", instance.Disk))}
	}
	out.Stopped = out.Stopped || stopped
	out.Uneven = ""
	out.Left = &instance.Left{
		Bytes:   certificate.Claim{Value: found.bytes, LowerBound: float64(bound), Rounding: certificate.Exact, Stopped: out.Stopped},
		Average: state.average(),
	}
	return out, nil
}
