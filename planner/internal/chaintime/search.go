package chaintime

import (
	"context"
	"math"
)

// Bounds of the search for the shortest step of a device map: the ways to
// place groups that are tried, the stops of an order, and the sums that one
// pass over all of them looks at.
const (
	maxGroups = 4096
	maxStops  = 1 << 14
	maxSums   = 200_000_000
)

// search is the search over groups' devices and orders of devices.
type search struct {
	*fixedPoint
	placements []groupPlacement
	order      bool         // devices are in device order
	line       []deviceStop // the stops of that order
	rest       bool         // placements lacks some ways to place the groups
	lowest     int64
	tried      int
}

// shortest is the map with the shortest step whose peaks are within the caps
// and whose time is at most cutoff; nil where there is none. No map within
// the caps is below the bound; with first, any map within cutoff will do.
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

// onWay finds the best map of one way. The time is a sum plus the slowest
// update: the least sum is found for ever shorter slowest updates, each just
// below the last map's, until what remains cannot be better.
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
