package bind

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
)

// tie is a weight that several units use, the owner among them, in module order.
type tie struct {
	owner, param int    // the unit, and which of its parameters
	name         string // of copies, as programs write it
	uses         []use
}

type use struct{ unit, param int }

// tie finds the tied weights in compile's order: by the first use that is not the owner's.
func (bound *Bound) tie() {
	type weight struct {
		owner int
		name  string
	}
	known := make(map[weight]int)
	var owners []string
	for index := range bound.units {
		for number := range bound.units[index].params {
			param := &bound.units[index].params[number]
			if param.owned {
				continue
			}
			tied := &bound.Recipe.Units[index].Tied[bound.Recipe.Units[index].Code.Tensors[param.value].Tie]
			key := weight{tied.Owner, tied.Tensor}
			at, seen := known[key]
			if !seen {
				at = len(bound.ties)
				known[key] = at
				owners = append(owners, bound.units[tied.Owner].name)
				owned := bound.owned(tied.Owner, tied.Tensor)
				bound.ties = append(bound.ties, tie{owner: tied.Owner, param: owned, uses: []use{{tied.Owner, owned}}})
				bound.units[tied.Owner].params[owned].tie = at
			}
			param.tie = at
			bound.ties[at].uses = append(bound.ties[at].uses, use{index, number})
		}
	}
	for at, name := range program.UnitNames(owners) {
		tie := &bound.ties[at]
		tie.name = name
		slices.SortStableFunc(tie.uses, func(one, other use) int { return one.unit - other.unit })
	}
}

// owned returns the parameter that a unit owns under a full name.
func (bound *Bound) owned(unit int, full string) int {
	return max(0, slices.IndexFunc(bound.units[unit].params, func(param param) bool { return param.owned && param.full == full }))
}

// weightOf returns a device's buffer of a tied weight: the owner's block, or the copy. The offset
// of the owner's tensor grows by shift.
func (bound *Bound) weightOf(device int32, tie *tie, word string, tensor int) (buffer int32, shift int64) {
	owner := &bound.units[tie.owner]
	if owner.device == device {
		return bound.buffer(device, owner.name+"."+word), 0
	}
	// A copy has nothing but this weight.
	return bound.buffer(device, tie.name+"."+word), -bound.Recipe.Units[tie.owner].Code.Tensors[tensor].Offset
}

// gradientOf returns a device's buffer with the gradient of one use of a tied weight: the use's own
// block, or the message that brought it.
func (bound *Bound) gradientOf(device int32, number int, use use) int32 {
	unit := &bound.units[use.unit]
	if unit.device == device {
		return bound.buffer(device, unit.name+".grads")
	}
	for _, holder := range bound.ties[number].uses {
		if bound.units[holder.unit].device == device {
			return bound.buffer(device, fmt.Sprintf("tied[%d]_%d_%d.slot[0]", number, use.unit, holder.unit))
		}
	}
	return program.None
}
