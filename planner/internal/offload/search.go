package offload

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/chainmemory"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// These limits bound the sets tried, and the sets for which the rest was placed.
const (
	maxSets     = 200_000
	maxPlacings = 1500
)

// search finds the units that leave. It tries sets in the order of their bytes until the rest fits.
// Units with equal costs are a class. The first units of a class leave, next to the first device,
// which runs them; or the last units leave.
type search struct {
	in      *instance.Instance
	classes []class
	least   int64 // memory of all units, before any leaves
	budgets int64
}

// left is a set of offloaded units, and the map of the rest.
type left struct {
	units []int
	rest  *instance.Answer
	bytes float64 // NaN if the set is not from the search by bytes
}

// run returns the first set, by bytes, whose rest fits. It also returns a lower bound of the bytes:
// those of the first set that frees what the devices lack together.
func (state *search) run(ctx context.Context, limits instance.Limits) (*left, int64) {
	order := newSetOrder(state.classes)
	bound, placed := int64(-1), 0
	for count := 0; ; count++ {
		set, ok := order.next()
		if !ok {
			return nil, max(0, bound)
		}
		if state.least-set.frees <= state.budgets {
			if bound < 0 {
				bound = set.bytes
			}
			placed++
			if got := state.try(ctx, set.counts, limits); got != nil {
				got.bytes = float64(set.bytes)
				return got, bound
			}
		}
		if count > maxSets || placed > maxPlacings || ctx.Err() != nil {
			if bound < 0 {
				bound = max(set.bytes, state.floor())
			}
			return state.nearest(ctx, limits), bound
		}
	}
}

// floor returns a lower bound of the bytes of every set that frees enough: the lacking memory at
// the best ratio of bytes to freed memory.
func (state *search) floor() int64 {
	ratio := math.Inf(1)
	for c := range state.classes {
		ratio = min(ratio, float64(state.classes[c].bytes)/float64(state.classes[c].frees))
	}
	return int64(float64(state.least-state.budgets) * ratio * (1 - instance.Tolerance))
}

// try places the remaining units after counts of each class left.
func (state *search) try(ctx context.Context, counts []uint16, limits instance.Limits) *left {
	front := state.units(counts, false)
	got := state.tryUnits(ctx, front, limits)
	if got == nil {
		if back := state.units(counts, true); !slices.Equal(front, back) {
			got = state.tryUnits(ctx, back, limits)
		}
	}
	return got
}

func (state *search) tryUnits(ctx context.Context, units []int, limits instance.Limits) *left {
	rest := state.in.Without(units)
	if place(ctx, rest, instance.Limits{Probes: limits.Probes, ValueOnly: true}) == nil {
		return nil
	}
	placed := place(ctx, rest, limits)
	if placed == nil {
		return nil
	}
	return &left{units, placed, math.NaN()}
}

// units returns the first, or the last, units of each class.
func (state *search) units(counts []uint16, last bool) []int {
	var out []int
	for count, n := range counts {
		sets := state.classes[count].sets[:n]
		if all := state.classes[count].sets; last {
			sets = all[len(all)-int(n):]
		}
		for _, set := range sets {
			out = append(out, set...)
		}
	}
	slices.Sort(out)
	return out
}

// lacking says what the devices lack after all units left that can leave.
func (state *search) lacking(ctx context.Context) string {
	if len(state.classes) == 0 {
		return "nothing may leave"
	}
	all := make([]uint16, len(state.classes))
	for c := range all {
		all[c] = uint16(len(state.classes[c].sets))
	}
	rest := state.in.Without(state.units(all, false))
	placed, err := chainmemory.Method{}.Solve(ctx, rest, instance.Limits{ValueOnly: true}, nil)
	if err != nil {
		return ""
	}
	devices := devicemap.Predict(rest.Costs, rest.Topology, placed.Map)
	worst, _ := instance.Fullest(devices)
	device := &devices[worst]
	need := device.Predicted.PeakAllocatedBytes + device.Predicted.OverheadBytes
	if need <= device.Budget {
		return "with all that may leave on the host, no unit stays on device 0, which would run them"
	}
	return fmt.Sprintf("with all that may leave on the host, device %d still needs %v and may hold %v, so %v are missing",
		worst, costmodel.Bytes(need), costmodel.Bytes(device.Budget), costmodel.Bytes(need-device.Budget))
}
