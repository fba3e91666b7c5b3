package anyplace

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
	"github.com/devmap-dev/devmap/planner/internal/solve/pairs"
)

// around is what a walk through some items of two devices has around it.
type around struct {
	netlist.Around
	free, used []bool
}

// layOut is the walk through items of two devices, and what they have to do whatever
// becomes of these: the others stay.
func (divide *splitter) layOut(
	ctx context.Context, anneal *annealer, device, other int32, items []int32, pair *pairs.Pair,
) *netlist.Frontier {
	around := &divide.around
	if around.free == nil {
		around.free, around.used = make([]bool, len(divide.Nodes)), make([]bool, len(divide.Wires))
		around.Sides, around.Outside = make([]byte, len(divide.Wires)), make([]bool, len(divide.Wires))
	}
	clear(around.free)
	for _, item := range items {
		around.free[item] = true
	}
	for item, place := range anneal.place {
		switch {
		case around.free[item]:
		case place == device:
			pair.One.Load += pair.One.Time[item]
			pair.One.Bytes += pair.Size[item]
		case place == other:
			pair.Two.Load += pair.Two.Time[item]
			pair.Two.Bytes += pair.Size[item]
		default:
		}
	}
	for wire := range divide.Wires {
		here := divide.survey(anneal, device, other, int32(wire))
		around.Outside[wire], around.used[wire] = here.outside, here.free && (!here.one || !here.two)
		switch {
		case here.one:
			around.Sides[wire] = netlist.Taken
		case here.two:
			around.Sides[wire] = netlist.Left
		default:
			around.Sides[wire] = netlist.Neither
		}
		here.pay(pair, divide.Wires[wire].Cost)
	}
	if divide.beside > 0 {
		taken := func(item int32) bool { return anneal.place[item] == device }
		return divide.LayOutBeside(ctx, items, around.used, divide.beside, pair.Budget(items), around.Around, taken)
	}
	return divide.LayOutIn(ctx, items, around.used, divide.width(anneal.devices), pair.Budget(items), around.Around)
}

// members tell where a wire has some: on the two devices, of those that stay, elsewhere,
// and among those that are free.
type members struct{ one, two, outside, free bool }

func (divide *splitter) survey(anneal *annealer, device, other, wire int32) (here members) {
	for _, member := range divide.Wires[wire].Members {
		switch place := anneal.place[member]; {
		case divide.around.free[member]:
			here.free = true
		case place == device:
			here.one = true
		case place == other:
			here.two = true
		default:
			here.outside = true
		}
	}
	return here
}

// pay adds what those that stay pay for a wire whatever becomes of the free.
func (here members) pay(pair *pairs.Pair, cost float64) {
	if here.one && (here.two || here.outside) && !pair.One.Free {
		pair.One.Load += cost
	}
	if here.two && (here.one || here.outside) && !pair.Two.Free {
		pair.Two.Load += cost
	}
}
