package latency

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/maxflow"
)

// straddles say what a call pays for units that an interval of a path leaves
// open: those beside the path at its ends, which the call may have or not. It
// has those for which that is cheaper: their time, what it then must fetch and
// send for them, and what it must not. The least of this, memory aside, is a
// minimum cut between what the call has and what it has not: a node's output
// that is sent (fetched) costs where the node is on one side and any reader on
// the other, whichever readers these are. A unit that lies between one that
// the call has and the interval is in the call too.
type straddles struct {
	*line

	at      [][]int32 // by boundary: units that are beside it
	network *maxflow.Network
	index   []int32 // of units, in the network; 0: not in it
	open    []int32
	seen    []bool // of nodes
	nets    []int32
	scale   float64 // capacities are whole: so many are a unit of time
}

// mostOpen bounds the units of a cut; with more, nothing is added.
const mostOpen = 400

func newStraddles(line *line) *straddles {
	out := &straddles{line: line, at: make([][]int32, line.length+1), index: make([]int32, len(line.nodes)), seen: make([]bool, len(line.unitOf))}
	longest := graph.Sum(line.transfer)
	for _, kind := range line.unlike {
		for _, time := range line.time[kind] {
			if !math.IsInf(time, 1) {
				longest += time
			}
		}
	}
	out.scale = math.Ldexp(1, 50-math.Ilogb(max(longest, math.SmallestNonzeroFloat32)))
	for unit := range line.nodes {
		for boundary := line.first[unit] + 1; boundary <= line.last[unit]; boundary++ {
			if len(out.at[boundary]) <= mostOpen {
				out.at[boundary] = append(out.at[boundary], int32(unit))
			}
		}
	}
	return out
}

// The two ends of the network: what the call has, and what it has not.
const (
	has = iota
	hasNot
	sides
)

// least is what a call that has a path's units from one to another pays
// besides; held is the size of what it has in any case.
func (open *straddles) least(from, to int, held float64) float64 {
	left, right := open.at[from], open.at[to+1]
	if len(left)+len(right) == 0 || len(left)+len(right) > mostOpen {
		return 0
	}
	open.open = open.open[:0]
	for _, units := range [][]int32{left, right} {
		for _, unit := range units {
			if open.index[unit] == 0 {
				open.index[unit] = int32(sides + len(open.open))
				open.open = append(open.open, unit)
			}
		}
	}
	open.gather()
	open.network = maxflow.New(sides + len(open.open))
	for _, unit := range open.open {
		open.unit(unit, from, to, held)
	}
	for _, node := range open.nets {
		open.net(node, from, to)
		open.seen[node] = false
	}
	least := float64(open.network.Run(has, hasNot)) / open.scale
	for _, unit := range open.open {
		open.index[unit] = 0
	}
	return least
}

// arc adds an arc; a capacity is rounded down, for the least cut is a bound.
func (open *straddles) arc(from, to int32, most float64) {
	whole := int64(maxflow.Unlimited)
	if !math.IsInf(most, 1) {
		whole = int64(most * open.scale)
	}
	open.network.Left[open.network.Arc(from, to)] = whole
}

// gather lists the nodes whose outputs open units send or read.
func (open *straddles) gather() {
	open.nets = open.nets[:0]
	add := func(node int32) {
		if !open.seen[node] {
			open.seen[node] = true
			open.nets = append(open.nets, node)
		}
	}
	for _, unit := range open.open {
		for _, node := range open.nodes[unit] {
			add(node)
			for _, before := range open.reads[node] {
				add(before)
			}
		}
	}
}

// unit is an open unit's time, and what the call has beside it.
func (open *straddles) unit(unit int32, from, to int, held float64) {
	least, own := math.Inf(1), open.index[unit]
	for _, kind := range open.unlike {
		if held+open.size[unit] <= open.problem.Kinds[kind].Room() {
			least = min(least, open.time[kind][unit])
		}
	}
	open.arc(own, hasNot, least)
	for _, below := range open.below[unit] {
		if other := open.index[below]; other != 0 && int(open.last[below]) <= to {
			open.arc(own, other, math.Inf(1))
		}
	}
	for _, above := range open.above[unit] {
		if other := open.index[above]; other != 0 && int(open.first[above]) >= from {
			open.arc(own, other, math.Inf(1))
		}
	}
}

// side is where a unit stands: on one, or as a node of the network.
func (open *straddles) side(unit int32, from, to int) int32 {
	switch {
	case open.index[unit] != 0:
		return open.index[unit]
	case int(open.first[unit]) >= from && int(open.last[unit]) <= to:
		return has
	}
	return hasNot
}

// net is what the call pays for a node's output: for sending it where the call
// has the node and not all readers, for fetching it where it has a reader and
// not the node. What it pays in any case is in the interval's sum.
func (open *straddles) net(node int32, from, to int) {
	own, cost := open.side(open.unitOf[node], from, to), open.transfer[node]
	var by [sides]bool
	var readers []int32
	for _, reader := range open.readBy[node] {
		switch side := open.side(open.unitOf[reader], from, to); {
		case side < sides:
			by[side] = true
		case side != own:
			readers = append(readers, side)
		}
	}
	switch {
	case own == has && !by[hasNot] && len(readers) > 0:
		open.sent(has, readers, cost)
	case own == hasNot && !by[has] && len(readers) > 0:
		open.fetched(hasNot, readers, cost)
	}
	if own < sides {
		return
	}
	switch {
	case by[hasNot]:
		open.arc(own, hasNot, cost)
	case len(readers) > 0:
		open.sent(own, readers, cost)
	}
	switch {
	case by[has]:
		open.arc(has, own, cost)
	case len(readers) > 0:
		open.fetched(own, readers, cost)
	}
}

// sent costs where a node is in the call and one of its readers is not.
func (open *straddles) sent(node int32, readers []int32, cost float64) {
	all := open.network.Node()
	open.arc(node, all, cost)
	for _, reader := range readers {
		open.arc(all, reader, math.Inf(1))
	}
}

// fetched costs where a reader is in the call and the node is not.
func (open *straddles) fetched(node int32, readers []int32, cost float64) {
	one := open.network.Node()
	open.arc(one, node, cost)
	for _, reader := range readers {
		open.arc(reader, one, math.Inf(1))
	}
}
