// Package exhaustive checks package planner in tests. It tries every map that the rules allow, and
// scores each with package devicemap. It is slow and simple on purpose.
package exhaustive

import (
	"slices"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Best describes the best maps of a problem.
type Best struct {
	Maps    int     // number of allowed maps
	Value   float64 // least largest share
	Squares float64 // least sum of squared shares among maps with that value
	Map     devicemap.Map
}

// Solve tries every map. Tied units share a device, and so do the units of a together-group. Pinned
// units are on the device of their pin. Units outside the tie groups are in device order. So is the
// first unit of a tie group, unless it opens the chain and no forward joins it. If any assignment
// is allowed, no unit is in device order. Patterns of pins and together-groups must be names of
// units. idle counts the overhead of idle devices. For a model smaller than a CUDA context, the
// answer is the one without it.
func Solve(problem *planner.Problem, idle bool) Best {
	state := search{problem: problem, idle: idle, placement: make(devicemap.Map, len(problem.Graph.Units)), shares: map[string]float64{}}
	state.rules()
	state.place(0, 0)
	return state.best
}

type search struct {
	problem   *planner.Problem
	placement devicemap.Map
	chained   []bool // the unit is in device order
	together  [][]int
	idle      bool
	best      Best
	shares    map[string]float64 // by device and its set of units; most of the cost
}

// rules finds the units of the chain and the sets that share a device.
func (state *search) rules() {
	problem := state.problem
	state.chained = make([]bool, len(state.placement))
	for unit := range state.chained {
		state.chained[unit] = !problem.Unconstrained
	}
	state.together = problem.Graph.TiedUnits()
	for _, tied := range state.together {
		for i, unit := range tied {
			state.chained[unit] = i == 0 && (unit != 0 || problem.Graph.Units[unit].Joined) && !problem.Unconstrained
		}
	}
	for _, names := range problem.Together {
		var set []int
		for _, name := range names {
			set = append(set, state.unit(name))
		}
		state.together = append(state.together, set)
	}
}

func (state *search) unit(name string) int {
	for unit := range state.problem.Graph.Units {
		if state.problem.Graph.Units[unit].Name == name {
			return unit
		}
	}
	panic("exhaustive: no unit " + name)
}

// place tries every device for a unit and all later ones; last is the device of the chained unit
// before.
func (state *search) place(unit int, last devicemap.Device) {
	if unit == len(state.placement) {
		state.judge()
		return
	}
	first := devicemap.Device(0)
	if state.chained[unit] {
		first = last
	}
	for device := first; int(device) < len(state.problem.Topology.Devices); device++ {
		state.placement[unit] = device
		next := last
		if state.chained[unit] {
			next = device
		}
		state.place(unit+1, next)
	}
}

func (state *search) allowed() bool {
	for _, set := range state.together {
		for _, unit := range set {
			if state.placement[unit] != state.placement[set[0]] {
				return false
			}
		}
	}
	moved := func(pin devicemap.Pin) bool { return int(state.placement[state.unit(pin.Pattern)]) != pin.Device }
	return !slices.ContainsFunc(state.problem.Pins, moved)
}

func (state *search) judge() {
	if !state.allowed() {
		return
	}
	value, squares := Score(state.problem, state.placement, state.idle, state.shares)
	if state.best.Maps == 0 || value < state.best.Value || value == state.best.Value && squares < state.best.Squares {
		state.best.Value, state.best.Squares = value, squares
		state.best.Map = append(state.best.Map[:0], state.placement...)
	}
	state.best.Maps++
}

// Score returns the largest share of a map and the sum of squared shares. With idle, an idle device
// counts its overhead, so it gains nothing. seen, if not nil, caches the share of a device with a
// set of units.
func Score(problem *planner.Problem, placement devicemap.Map, idle bool, seen map[string]float64) (value, squares float64) {
	for device := range problem.Topology.Devices {
		key := make([]byte, 1+len(placement))
		key[0] = byte(device)
		for unit := range placement {
			if int(placement[unit]) == device {
				key[1+unit] = 1
			}
		}
		share, ok := seen[string(key)]
		if !ok {
			share = shareOf(problem, placement, device, idle)
			if seen != nil {
				seen[string(key)] = share
			}
		}
		value = max(value, share)
		squares += share * share
	}
	return value, squares
}

func shareOf(problem *planner.Problem, placement devicemap.Map, device int, idle bool) float64 {
	got := devicemap.Predict(problem.Costs, problem.Topology, placement)[device]
	if got.Units == 0 && idle {
		return float64(problem.Costs.Overhead(device, &problem.Topology.Devices[device])) / float64(got.Budget)
	}
	return got.Share
}
