package steptime

import (
	"github.com/devmap-dev/devmap/costmodel/order"
)

// movedUnit is a unit that runs kernels, on a stage with units whose saved tensors move to host
// memory. Such a stage is simulated unit by unit.
type movedUnit struct {
	UnitTicks
	unit                 int
	moves, keeps, learns bool
	stored               []int64 // when the tensors of micro-batches in flight were in host memory
	ended                int64   // its last backward
}

// copies are a rank's copies between device and host, in two streams. The passes of moved units use
// a few sets of memory in turn ([costmodel.Regions.Moved]). free is since when each is free.
type copies struct {
	down, up int64
	free     []int64
	next     int // passes so far
}

// movedPass is a pass of a stage with moved units. The units from writer on write the buffer that is
// sent; frees and sent are when the first has run, and when the message is complete.
type movedPass struct {
	stage       *lineStage
	kind        order.Kind
	writer      int
	frees, sent int64
}

// moves prepares a stage for its moved units, if it has any.
func (line *line) moves(stage *lineStage) {
	found := false
	var units []movedUnit
	writer := 0
	for unit := stage.first; unit < stage.end; unit++ {
		regions := &line.table.Units[unit].Regions
		if regions.Passes {
			continue
		}
		if found = found || regions.Moved > 0; regions.Moved > 0 {
			line.ranks[stage.rank].copies.free = make([]int64, regions.Moved)
		}
		if regions.Input > 0 {
			writer = len(units)
		}
		units = append(units, movedUnit{UnitTicks: line.Unit(unit, line.devices[stage.rank]), unit: unit, moves: regions.Moved > 0, keeps: regions.Input > 0, learns: regions.Learns})
	}
	if !found {
		return
	}
	stage.units = units
	stage.forward.moved = &movedPass{stage: stage, kind: order.Forward, writer: writer}
	stage.backward.moved = &movedPass{stage: stage, kind: order.Input, writer: len(units) - 1}
	stage.learn.moved = &movedPass{stage: stage, kind: order.Weight, writer: len(units)}
	stage.whole.moved = &movedPass{stage: stage, kind: order.Backward, writer: len(units) - 1}
}

// run runs some units of a pass, counted in its direction.
func (pass *movedPass) run(rank *simulatedRank, from, to int) {
	units := pass.stage.units
	for i := from; i < min(to, len(units)); i++ {
		if pass.kind == order.Forward {
			pass.forth(rank, i)
		} else {
			pass.back(rank, &units[len(units)-1-i])
		}
		if i == 0 {
			pass.frees = pass.sent
		}
	}
}

// forth is a unit's forward. It begins once there is a set for its input, which the first unit
// writes itself, and for the next input, which it writes.
func (pass *movedPass) forth(rank *simulatedRank, at int) {
	units, copies := pass.stage.units, &rank.copies
	now, set := &units[at], copies.next
	if now.moves {
		if at == 0 {
			rank.clock = max(rank.clock, *copies.set(set))
		}
		set++
	}
	for next := at + 1; next < len(units) && (at == 0 || now.keeps); next++ {
		if units[next].keeps {
			if units[next].moves {
				rank.clock = max(rank.clock, *copies.set(set))
			}
			break
		}
	}
	rank.clock += now.Forward
	pass.sent = rank.clock
	if now.moves {
		copies.down = max(copies.down, rank.clock) + now.Store
		now.stored = append(now.stored, copies.down)
		*copies.set(copies.next) = copies.down
		copies.next++
	}
}

// back is a unit's backward or a half of it. It begins when its tensors have come back.
func (pass *movedPass) back(rank *simulatedRank, now *movedUnit) {
	copies := &rank.copies
	if pass.kind == order.Weight && !now.learns {
		return
	}
	if now.moves {
		begin := max(copies.up, *copies.set(copies.next))
		if pass.kind != order.Weight {
			begin = max(begin, now.stored[0])
			now.stored = now.stored[:copy(now.stored, now.stored[1:])]
		}
		copies.up = begin + now.Fetch
		rank.clock = max(rank.clock, copies.up)
	}
	if pass.kind != order.Weight {
		rank.clock += now.Recompute + now.Backward
	}
	pass.sent = rank.clock
	if pass.kind != order.Input {
		rank.clock += now.Learn
	}
	now.ended = rank.clock
	if now.moves {
		*copies.set(copies.next) = rank.clock
		copies.next++
	}
}

func (copies *copies) set(pass int) *int64 { return &copies.free[pass%len(copies.free)] }

// clocks are all times of a rank's copies; which sets are next is also its state.
func (line *line) clocks(rank *simulatedRank) (all []*int64) {
	copies := &rank.copies
	if copies.next == 0 {
		return nil
	}
	all = append(all, &copies.down, &copies.up)
	for i := range copies.free {
		all = append(all, copies.set(copies.next+i))
	}
	for i := range line.stages {
		if stage := &line.stages[i]; &line.ranks[stage.rank] == rank {
			for unit := range stage.units {
				for j := range stage.units[unit].stored {
					all = append(all, &stage.units[unit].stored[j])
				}
			}
		}
	}
	return all
}

// shift moves them by so many ticks.
func (line *line) shift(rank *simulatedRank, ticks int64) {
	for _, clock := range line.clocks(rank) {
		*clock += ticks
	}
}
