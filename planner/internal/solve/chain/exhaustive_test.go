// The exhaustive search of these tests tries every map, in rational arithmetic. It is slow and
// simple on purpose.
package chain_test

import (
	"math/big"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// best is the result of exhaustive search: the common properties of the best maps.
type best struct {
	Maps    int      // number of maps within the pins; with 0 the rest is nil
	Share   *big.Rat // least largest share
	Squares *big.Rat // least sum of squared shares among the maps with that share
}

// exhaustive tries all cuts with all placements of the groups.
func exhaustive(problem *chain.Problem) best {
	state := search{problem: problem, cuts: make([]int, len(problem.Budgets)+1), device: make([]int, problem.Groups), shares: map[key]*big.Rat{}}
	state.cuts[len(problem.Budgets)] = problem.Items
	state.placeGroups(0)
	return state.best
}

type search struct {
	problem *chain.Problem
	cuts    []int
	device  []int // of each group
	best    best
	shares  map[key]*big.Rat // making a big.Rat is most of the cost
}

type key struct {
	device, a, b int
	groups       uint64
}

func (state *search) placeGroups(group int) {
	if group == state.problem.Groups {
		state.placeCuts(1)
		return
	}
	for device := range state.problem.Budgets {
		state.device[group] = device
		state.placeGroups(group + 1)
	}
}

func (state *search) placeCuts(device int) {
	if device == len(state.problem.Budgets) {
		state.judge()
		return
	}
	for cut := state.cuts[device-1]; cut <= state.problem.Items; cut++ {
		state.cuts[device] = cut
		state.placeCuts(device + 1)
	}
}

func (state *search) judge() {
	if !allowed(state.problem, state.cuts, state.device) {
		return
	}
	state.best.Maps++
	worst := state.share(0)
	for device := range state.problem.Budgets {
		if x := state.share(device); x.Cmp(worst) > 0 {
			worst = x
		}
	}
	order := -1
	if state.best.Share != nil {
		order = worst.Cmp(state.best.Share)
	}
	if order > 0 {
		return
	}
	squares := new(big.Rat)
	for device := range state.problem.Budgets {
		x := state.share(device)
		squares.Add(squares, new(big.Rat).Mul(x, x))
	}
	if order < 0 || squares.Cmp(state.best.Squares) < 0 {
		state.best.Share, state.best.Squares = worst, squares
	}
}

func (state *search) share(device int) *big.Rat {
	k := key{device, state.cuts[device], state.cuts[device+1], mask(state.device, device)}
	if state.shares[k] == nil {
		state.shares[k] = big.NewRat(state.problem.Peak(device, k.a, k.b, k.groups), state.problem.Budgets[device])
	}
	return state.shares[k]
}

func mask(device []int, deviceIndex int) (groups uint64) {
	for group, e := range device {
		if e == deviceIndex {
			groups |= 1 << group
		}
	}
	return groups
}

// allowed reports whether a map covers the chain in order, satisfies pins and followers, and gives
// every device an item if Filled is set.
func allowed(problem *chain.Problem, cuts, device []int) bool {
	k := len(problem.Budgets)
	if len(cuts) != k+1 || cuts[0] != 0 || cuts[k] != problem.Items || len(device) != problem.Groups || !slices.IsSorted(cuts) {
		return false
	}
	for deviceIndex := range k {
		if problem.Filled && cuts[deviceIndex] == cuts[deviceIndex+1] {
			return false
		}
	}
	return keepsPins(problem, cuts, device)
}

func keepsPins(problem *chain.Problem, cuts, device []int) bool {
	on := func(i, deviceIndex int) bool { return cuts[deviceIndex] <= i && i < cuts[deviceIndex+1] }
	for i, deviceIndex := range problem.Pins {
		if deviceIndex >= 0 && !on(i, deviceIndex) {
			return false
		}
	}
	for group, deviceIndex := range problem.GroupPins {
		if deviceIndex >= 0 && device[group] != deviceIndex {
			return false
		}
	}
	for group, items := range problem.Follow {
		for _, i := range items {
			if !on(i, device[group]) {
				return false
			}
		}
	}
	return true
}
