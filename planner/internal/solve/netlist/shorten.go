package netlist

import (
	"cmp"
	"slices"
)

// cutting is a wire without the member at one end of its span, or, where it joins
// but two, without the wire.
type cutting struct {
	wire   int
	member int32
	// loses is its cost for each step that it is open no more.
	loses float64
}

// shortened is the hypergraph with one wire in fifty, and one at least, a member
// shorter, those that lose the least for the steps that they are open no more. A
// wire of which some members are on both sides is mixed whatever the others do,
// so that what is left of it costs no more than it did. Of two members nothing
// is left: the wire is used no more.
func (nets *Netlist) shortened(order []int32, used []bool) *Netlist {
	step := make([]int, len(nets.Nodes))
	for at, item := range order {
		step[item] = at
	}
	var cuts []cutting
	for wire := range used {
		if used[wire] {
			cuts = append(cuts, nets.cut(wire, step))
		}
	}
	slices.SortStableFunc(cuts, func(a, b cutting) int { return cmp.Compare(a.loses, b.loses) })
	short := *nets
	short.Wires, short.WiresOf = slices.Clone(nets.Wires), slices.Clone(nets.WiresOf)
	for _, cut := range cuts[:(len(cuts)+49)/50] {
		members := nets.Wires[cut.wire].Members
		if len(members) == 2 {
			used[cut.wire] = false
			continue
		}
		short.Wires[cut.wire].Members = without(members, cut.member)
		short.WiresOf[cut.member] = without(short.WiresOf[cut.member], int32(cut.wire))
	}
	return &short
}

// cut is the better end of a wire to cut off.
func (nets *Netlist) cut(wire int, step []int) cutting {
	members := slices.Clone(nets.Wires[wire].Members)
	slices.SortFunc(members, func(a, b int32) int { return cmp.Compare(step[a], step[b]) })
	last := len(members) - 1
	early, late := step[members[1]]-step[members[0]], step[members[last]]-step[members[last-1]]
	cut := cutting{wire: wire, member: members[last]}
	saves := late
	if early > late {
		cut.member, saves = members[0], early
	}
	// A share of the cost is lost: of more members, others still tell.
	cut.loses = nets.Wires[wire].Cost / float64(last) / float64(saves)
	return cut
}

// without is a list that lacks a number.
func without(list []int32, number int32) []int32 {
	return slices.DeleteFunc(slices.Clone(list), func(other int32) bool { return other == number })
}
