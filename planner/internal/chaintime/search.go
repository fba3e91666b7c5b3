package chaintime

import (
	"context"
	"math"
)

// These limits bound the search for a device map's shortest step: the placements of groups, the
// stops of an order, and the sums in one pass over all of them.
const (
	maxGroups = 4096
	maxStops  = 1 << 14
	maxSums   = 200_000_000
)

// search tries the groups' devices and the orders of devices.
type search struct {
	*fixedPoint
	placements []groupPlacement
	order      bool         // devices are in device order
	line       []deviceStop // the stops of device order
	rest       bool         // placements is incomplete
	lowest     int64
	tried      int
}

// shortest returns the map with the shortest step whose peaks are within the caps and whose time is
// at most cutoff; nil if there is none. The result bound is a lower bound of every map within the
// caps. With first, it returns any map within cutoff.
func (state *search) shortest(ctx context.Context, caps []int64, cutoff int64, first bool) (best *placedMap, bound int64, done bool) {
	bound, done = math.MaxInt64, true
	for i := range state.placements {
		if ctx.Err() != nil {
			bound, done = min(bound, state.unconstrained()), false
			break
		}
		path, ok := state.newPath(state.placements[i].stops, state.placements[i].groups)
		if !ok {
			continue
		}
		least := path.least()
		if least == math.MaxInt64 {
			continue
		}
		least += state.lowest
		if least > cutoff || !path.within(caps) {
			continue
		}
		got, low, all := state.onWay(ctx, path, least, cutoff)
		done = done && all
		bound = min(bound, low)
		if got != nil && (best == nil || got.less(best)) {
			best, cutoff = got, got.cost.time
			if first {
				return best, bound, done
			}
		}
	}
	if state.rest {
		bound, done = min(bound, state.unconstrained()), false
	}
	if best != nil {
		bound = min(bound, best.cost.time)
	}
	return best, bound, done
}

// onWay returns the best map of one placement. The time is a sum plus the slowest update. It
// minimizes the sum under a limit for the slowest update, and lowers the limit below each map's
// update until no map can be better.
func (state *search) onWay(ctx context.Context, path *pathSearch, least, cutoff int64) (best *placedMap, bound int64, done bool) {
	bound = math.MaxInt64
	slowest := cutoff - (least - state.lowest)
	for slowest >= state.lowest {
		if ctx.Err() != nil {
			return best, min(bound, least), false
		}
		state.tried++
		got := path.walk(ctx, slowest)
		if got == nil && ctx.Err() != nil {
			return best, min(bound, least), false
		}
		if got == nil {
			break
		}
		sum := got.cost.time - got.update
		least = sum + state.lowest
		bound = min(bound, got.cost.time)
		if !path.groupsFit(got) {
			return best, min(bound, least), false
		}
		if got.cost.time <= cutoff && (best == nil || got.less(best)) {
			best, cutoff = got, got.cost.time
		}
		slowest = min(got.update-1, cutoff-sum)
	}
	return best, bound, true
}
