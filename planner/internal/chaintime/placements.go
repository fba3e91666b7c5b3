package chaintime

import (
	"slices"
)

// groupPlacement is the devices of the groups, with their stops.
type groupPlacement struct {
	groups []int
	stops  []deviceStop
}

// newSearch lists the placements of groups; nil if there are too many for this order.
func newSearch(point *fixedPoint, order bool) *search {
	state := &search{fixedPoint: point, order: order}
	if order {
		state.line = inOrder(point.devices)
	}
	state.list(nil) // independent of the waits
	sums := 0
	for i := range state.placements {
		if state.placements[i].stops == nil {
			return nil
		}
		for _, stop := range state.placements[i].stops {
			sums += (2 + len(stop.before)) * point.items
		}
	}
	if sums > maxSums && !order {
		return nil
	}
	state.lowest = state.floor()
	return state
}

// waiting returns the search with other sums.
func (state *search) waiting(point *fixedPoint) *search {
	out := *state
	out.fixedPoint, out.tried = point, 0
	out.lowest = out.floor()
	return &out
}

// list adds the placements that begin with the given devices. The first empty device of a class
// represents all others of the class.
func (state *search) list(groups []int) {
	if len(state.placements) >= maxGroups {
		state.rest = true
		return
	}
	group := len(groups)
	if group == len(state.peaks.Groups) {
		state.placements = append(state.placements, groupPlacement{slices.Clone(groups), state.stopsOf(groups)})
		return
	}
	if at := state.peaks.GroupPins[group]; at >= 0 {
		state.list(append(groups, at))
		return
	}
	apart := state.apart(groups)
	if state.order {
		for device := range state.devices {
			state.list(append(groups, device))
		}
		return
	}
	for _, class := range state.In.Classes(apart) {
		state.list(append(groups, class[0]))
	}
}

// apart returns the devices that pins and groups make different from others.
func (state *search) apart(groups []int) map[int]bool {
	out := map[int]bool{}
	for _, list := range [][]int{groups, state.peaks.GroupPins, state.peaks.Pins} {
		for _, device := range list {
			if device >= 0 {
				out[device] = true
			}
		}
	}
	return out
}

func (state *search) stopsOf(groups []int) []deviceStop {
	if state.order {
		return state.line
	}
	return anyOrder(state.In.Classes(state.apart(groups)), maxStops)
}
