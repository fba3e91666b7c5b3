package assignmemory

import (
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// trials limits the exchanges that tidy tries, as it runs after the time is up.
const trials = 10_000

// tidy exchanges items, and moves items without memory, to send fewer bytes. Neither the largest
// share nor the sum of squares rises.
func (state *search) tidy(placement devicemap.Map) {
	send := instance.NewSender(state.problem.In)
	now := send.Sent(placement)
	kindOf := state.problem.KindOf()
	deviceOf := func(i int) devicemap.Device { return placement[state.problem.Items[i].Units[0]] }
	put := func(i int, device devicemap.Device) {
		for _, unit := range state.problem.Items[i].Units {
			placement[unit] = device
		}
	}
	left := trials / (1 + len(placement)/100)
	for improved := true; improved && left > 0; {
		improved = false
		for i := range state.problem.Items {
			for j := range i {
				device, other := deviceOf(i), deviceOf(j)
				if device == other || state.problem.Items[i].Device >= 0 || state.problem.Items[j].Device >= 0 || len(state.problem.Items[i].Units) != len(state.problem.Items[j].Units) {
					continue
				}
				left--
				if left <= 0 {
					return
				}
				put(i, other)
				put(j, device)
				if sent := send.Sent(placement); sent < now && state.swaps(kindOf[i], kindOf[j], device, other) {
					now, improved = sent, true
					continue
				}
				put(i, device)
				put(j, other)
			}
		}
	}
}

// swaps exchanges an item of a kind on one device and one of another kind on another device, if the
// loads are then no worse. Kind −1 means items without memory.
func (state *search) swaps(kind, otherKind int, device, other devicemap.Device) bool {
	if kind == otherKind {
		return true
	}
	if kind < 0 || otherKind < 0 {
		return false
	}
	from, to := state.loads[device], state.loads[other]
	was := state.squaresOf(from, to)
	change := move{from, to, kind, otherKind, 1, 1}
	change.apply(1)
	if state.squaresOf(from, to) <= was*(1+instance.Tolerance) {
		return true
	}
	change.apply(-1)
	return false
}
