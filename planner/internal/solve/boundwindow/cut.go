package boundwindow

import "github.com/devmap-dev/devmap/planner/internal/solve/maxflow"

// cut is the choice of one boundary of the row: the items before it, a down-set
// that holds all that must be before and nothing that must be after. Its least
// cost is a minimum cut: that of a closure (Picard, "Maximal closure of a graph
// and applications to combinatorial problems", Management Science 22, 1976)
// with the wires that cross.
type cut struct {
	*maxflow.Network
	// node is an item's; inside and outside are those of what is decided.
	node []int32
	// free are the items that are not decided, take and leave their arcs:
	// crossing one costs what being on the other side does.
	free        []int32
	take, leave []int
	// always are the wires that cross however the rest is; wires may, at the
	// cost of an arc; fixed are the arcs that no cut may cross.
	always, wires []int32
	arcs, fixed   []int
	crosses       []bool // by wires, in the latest answer
}

const (
	inside  = 0
	outside = 1
)

// newCut builds the network of the boundary after a stage.
func (form *form) newCut(stage int, within *windows) *cut {
	out := &cut{Network: maxflow.New(2), node: make([]int32, len(form.time))}
	for item := range out.node {
		switch {
		case within.last[item] <= stage:
			out.node[item] = inside
		case within.first[item] > stage:
			out.node[item] = outside
		default:
			out.node[item] = out.Node()
			out.free = append(out.free, int32(item))
		}
	}
	for _, item := range out.free {
		out.take = append(out.take, out.Arc(inside, out.node[item]))
		out.leave = append(out.leave, out.Arc(out.node[item], outside))
		for _, other := range form.before[item] {
			if out.node[other] > outside {
				out.fixed = append(out.fixed, out.Arc(out.node[item], out.node[other]))
			}
		}
	}
	for wire := range form.wires {
		out.addWire(form, int32(wire))
	}
	out.crosses = make([]bool, len(out.wires))
	return out
}

// addWire adds a wire: it crosses where some of its members are before the
// boundary and some after.
func (out *cut) addWire(form *form, wire int32) {
	members := form.wires[wire].Members
	before, after := 0, 0
	for _, item := range members {
		switch out.node[item] {
		case inside:
			before++
		case outside:
			after++
		}
	}
	switch {
	case before == len(members) || after == len(members):
		return
	case before > 0 && after > 0:
		out.always = append(out.always, wire)
		return
	}
	// Members lead to the tail, which is before the boundary where any of them
	// is; the head, after it where any is, leads to them.
	tail, head := int32(inside), int32(outside)
	if before == 0 {
		tail = out.joint(members, form.source[wire], func(item, joint int32) int { return out.Arc(item, joint) })
	}
	if after == 0 {
		head = out.joint(members, form.sink[wire], func(item, joint int32) int { return out.Arc(joint, item) })
	}
	out.wires = append(out.wires, wire)
	out.arcs = append(out.arcs, out.Arc(tail, head))
}

// joint is the node of the member that stands for all, or one that is joined to
// all of those that are not decided.
func (out *cut) joint(members []int32, apex int, arc func(item, joint int32) int) int32 {
	if apex >= 0 {
		return out.node[apex]
	}
	joint := out.Node()
	for _, item := range members {
		if out.node[item] > outside {
			out.fixed = append(out.fixed, arc(out.node[item], joint))
		}
	}
	return joint
}

// least is the least cost of the boundary, for a cost of each item before it
// and of each wire that crosses it.
func (out *cut) least(item func(int32) int64, wire func(int32) int64) int64 {
	clear(out.Left)
	total := int64(0)
	for i, free := range out.free {
		if cost := item(free); cost < 0 {
			out.Left[out.take[i]] = -cost
			total += cost
		} else {
			out.Left[out.leave[i]] = cost
		}
	}
	for _, arc := range out.fixed {
		out.Left[arc] = maxflow.Unlimited
	}
	for i, arc := range out.arcs {
		out.Left[arc] = wire(out.wires[i])
	}
	for of, node := range out.node {
		if node == inside {
			total += item(int32(of))
		}
	}
	for _, of := range out.always {
		total += wire(of)
	}
	total += out.Run(inside, outside)
	for i, arc := range out.arcs {
		tail, head := out.Ends(arc)
		out.crosses[i] = out.Inside(tail) && !out.Inside(head)
	}
	return total
}

// before says whether an item is before the boundary in the latest answer.
func (out *cut) before(item int) bool {
	node := out.node[item]
	return node == inside || node != outside && out.Inside(node)
}
