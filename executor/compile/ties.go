package compile

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
)

// tie finds the weights that several units use, each with its uses in the order
// of the units.
func (compiler *compiler) tie() {
	type tensor struct {
		owner int
		name  string
	}
	known := make(map[tensor]int)
	var owners []string
	for index := range compiler.units {
		unit := &compiler.units[index]
		for _, tied := range unit.Tied {
			key := tensor{tied.Owner, tied.Tensor}
			number, seen := known[key]
			if !seen {
				number = len(compiler.ties)
				known[key] = number
				owners = append(owners, compiler.units[tied.Owner].name)
				compiler.ties = append(compiler.ties, tie{Tie: tied, uses: []tiedUse{{unit: tied.Owner}}})
			}
			compiler.ties[number].uses = append(compiler.ties[number].uses, tiedUse{unit: index})
			unit.ties = append(unit.ties, number)
		}
	}
	names := program.UnitNames(owners)
	for number := range compiler.ties {
		compiler.ties[number].name = names[number]
		slices.SortFunc(compiler.ties[number].uses, func(one, other tiedUse) int { return one.unit - other.unit })
	}
}

// exchanged makes the channels on which each use's gradient goes to every other device that has the
// weight. All of these devices add up the same gradients in the same order, so that their copies
// stay equal.
func (wiring wiring) exchanged() error {
	for number := range wiring.ties {
		tie := &wiring.ties[number]
		for at := range tie.uses {
			use := &tie.uses[at]
			unit := &wiring.units[use.unit]
			for _, holder := range wiring.holders(tie) {
				to := wiring.units[holder].device
				if to == unit.device || tie.Grads == 0 {
					continue
				}
				if unit.Grads != tie.Grads {
					return fmt.Errorf("%s has gradients other than that of %s, which is tied: no program sends a part of them", unit.name, tie.Tensor)
				}
				ticks, latency := wiring.times.Message(int(unit.device), int(to), tie.Grads)
				name := fmt.Sprintf("tied[%d]_%d_%d", number, use.unit, holder)
				use.to = append(use.to, wiring.channel(name, &wiring.devices[unit.device], &wiring.devices[to], 1, tie.Grads, ticks, latency))
			}
		}
	}
	return nil
}

// holders returns the first use on each device.
func (wiring wiring) holders(tie *tie) (units []int) {
	var seen []int32
	for _, use := range tie.uses {
		if on := wiring.units[use.unit].device; !slices.Contains(seen, on) {
			seen, units = append(seen, on), append(units, use.unit)
		}
	}
	return units
}
