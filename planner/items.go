package planner

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// layout turns units into the items and groups of a chain problem.
type layout struct {
	p *Problem
	// items are stretches of order: item i is order[start[i]:start[i+1]].
	// order lists the units of the chain, those of groups left out.
	order []int
	start []int
	// groups are the units of each tie group, merged where a together-group
	// joins them; groupOf is a unit's group, or -1.
	groups  [][]int
	groupOf []int
	// follow are the items that must sit with a group.
	follow [][]int

	costs  *timeline.Chain // of order
	tied   []tiedUnit      // units of groups, ascending
	device []timeline.Resident
	extra  []int64 // overhead per device
	idle   []int64 // what a device without units counts
	// additive: peaks are sums, with the same part of a device added whether
	// it is idle or not.
	additive bool
	// stages answers for a pipeline's stages; nil under a device map.
	stages *timeline.StageChain
}

// tiedUnit is a unit of a group: its place in the chain's order, and its run.
type tiedUnit struct {
	group, position int
	run             timeline.Summary
}

// newLayout finds groups and items. joined lists sets of units that must
// share a device.
func newLayout(p *Problem, joined [][]int) *layout {
	l := &layout{p: p, groupOf: make([]int, len(p.Graph.Units)), additive: p.Costs.Additive}
	tied := p.Graph.TiedUnits()
	if p.piped() { // a tied parameter has a copy on each stage
		tied, joined = nil, append(p.passing(), joined...)
		l.stages = timeline.NewStageChain(p.Costs)
	}
	free, follow := anchor(staying(tied, p.offloaded))
	if len(p.offloaded) > 0 {
		free = append(free, p.offloaded)
	}
	joined = append(follow, joined...)
	l.makeGroups(free, joined)
	l.makeItems(joined)
	units := make([]costmodel.Unit, len(l.order))
	for i, u := range l.order {
		units[i] = p.Costs.Units[u]
	}
	l.costs = timeline.NewChain(units)
	position := 0
	for u, g := range l.groupOf {
		if g < 0 {
			position++
			continue
		}
		l.tied = append(l.tied, tiedUnit{g, position, timeline.Of(&p.Costs.Units[u])})
	}
	for d := range p.Topology.Devices {
		dev := &p.Topology.Devices[d]
		l.device = append(l.device, timeline.ResidentOn(p.Costs, d, dev, false))
		l.extra = append(l.extra, p.Costs.Overhead(d, dev))
		l.idle = append(l.idle, timeline.Summary{}.Peak(timeline.ResidentOn(p.Costs, d, dev, true))+l.extra[d])
	}
	return l
}

// peak is what device d needs at its peak with items [a, b) and a set of
// groups: the chain's stretches and the groups' units joined in the order
// they run. Overhead counts on an idle device too, so that leaving one idle
// gains nothing.
func (l *layout) peak(d, a, b int, groups uint64) int64 {
	if a >= b && groups == 0 {
		return l.idle[d]
	}
	if l.stages != nil {
		return l.stagePeak(d, a, b)
	}
	at, end := l.start[a], l.start[b]
	if groups == 0 { // nothing to join: the solver asks this most
		return l.costs.Summary(at, end).Peak(l.device[d]) + l.extra[d]
	}
	var r timeline.Summary
	for i := range l.tied {
		t := &l.tied[i]
		if groups>>t.group&1 == 0 {
			continue
		}
		if next := min(t.position, end); next > at {
			r = r.Join(l.costs.Summary(at, next))
			at = next
		}
		r = r.Join(t.run)
	}
	r = r.Join(l.costs.Summary(at, end))
	return r.Peak(l.device[d]) + l.extra[d]
}

// countNothingIdle takes overhead off devices that hold nothing.
func (l *layout) countNothingIdle() {
	for d := range l.idle {
		if l.idle[d] == l.extra[d] {
			l.idle[d] = 0
		}
	}
	l.additive = false
}

// problem is the chain problem of the layout.
func (l *layout) problem(pins *pins) chain.Problem {
	budgets := make([]int64, len(l.p.Topology.Devices))
	for d := range budgets {
		budgets[d] = l.p.Topology.Devices[d].Budget()
	}
	p := chain.Problem{
		Items: len(l.start) - 1, Budgets: budgets, Groups: len(l.groups), Peak: l.peak,
		Pins: pins.items, GroupPins: pins.groups, Follow: l.follow,
		Additive: l.additive,
	}
	if l.stages != nil {
		p.Floor = l.stageFloor
	} else {
		p.Alike = l.alikes(budgets)
	}
	return p
}

// alikes numbers the devices by what the chain solver sees of them.
func (l *layout) alikes(budgets []int64) []int {
	type figures struct {
		kept                timeline.Resident
		extra, idle, budget int64
	}
	known := make(map[figures]int)
	out := make([]int, len(budgets))
	for d := range out {
		f := figures{l.device[d], l.extra[d], l.idle[d], budgets[d]}
		if _, ok := known[f]; !ok {
			known[f] = len(known)
		}
		out[d] = known[f]
	}
	return out
}
