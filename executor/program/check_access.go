package program

import "slices"

// accessRules checks what instructions read and write, in the order of the walk:
// V4, V7, V8, V12 and V16.
type accessRules struct {
	*check
	sets     [][]epoch
	freeSets []int32

	wrote []bool  // by buffer: something wrote it
	made  []int32 // by buffer: the load or zero that made it and that no unload has undone, or None
	use   gradientUse
	flow  flow
}

func newAccessRules(check *check) *accessRules {
	count := len(check.Buffers)
	found := &accessRules{
		check: check, wrote: make([]bool, count), made: make([]int32, count), use: newGradientUse(check), flow: newFlow(check),
	}
	for i := range count {
		found.made[i] = None
	}
	return found
}

// visit checks one instruction against the rules. clock is what it has seen, itself included. Reads
// are checked before writes.
func (rules *accessRules) visit(index int32, clock []int32) {
	if earlier := rules.before[index]; earlier != None && !rules.seen(clock, earlier) {
		rules.outOfOrder(index, earlier)
	}
	instr := &rules.Instrs[index]
	accesses := rules.accesses(index)
	for ordinal, access := range accesses {
		if access.Mode != Write && rules.own(instr, access) && rules.read(index, clock, access) {
			rules.flow.follow(index, ordinal, access)
		}
	}
	if instr.Op == Send && instr.Channel >= 0 {
		rules.fillSlot(index, clock)
	}
	rules.leave(instr, accesses)
	for _, access := range accesses {
		if access.Mode != Read && rules.own(instr, access) {
			rules.write(index, clock, access.Buffer, written)
		}
	}
	rules.note(index, instr, accesses)
	if instr.Op == Free && instr.Channel >= 0 {
		rules.free(index, clock)
	}
	if instr.Op == Unload {
		rules.unload(index, clock, accesses)
	}
}

// own reports whether a buffer is on the instruction's device. V5 reports the others.
func (check *check) own(instr *Instr, access Access) bool {
	return check.Buffers[access.Buffer].Device == instr.Device
}

// seen reports whether an instruction happens before the one with this clock.
func (check *check) seen(clock []int32, index int32) bool {
	return clock[check.stream[index]] >= check.place[index]
}

// at returns the instruction of an epoch.
func (check *check) at(stream, place int32) int32 {
	return check.events[check.starts[stream]+place-1]
}

// outOfOrder reports that an earlier instruction does not happen before this one, as it must.
func (rules *accessRules) outOfOrder(index, earlier int32) {
	rule := "V1"
	switch rules.Instrs[index].Op { //nolint:exhaustive // the others are V1's
	case Send, Recv:
		rule = "V3"
	case Free:
		rule = "V4"
	}
	rules.faultAt(rule, index, "does not happen behind %s; want it behind", rules.brief(earlier))
}

// read checks a read, or the reading half of an accumulation, against V7 and V8. It reports whether
// the buffer has what the instruction reads.
func (rules *accessRules) read(index int32, clock []int32, access Access) bool {
	span := rules.spans[access.Buffer]
	if span.own != None && !rules.readCell(index, clock, access, &rules.cells[span.own]) {
		return false
	}
	for number := span.first; number < span.end; number++ {
		if !rules.readCell(index, clock, access, &rules.cells[number]) {
			return false
		}
	}
	return true
}

// readCell reads one cell, and reports whether it has what the instruction reads.
func (rules *accessRules) readCell(index int32, clock []int32, access Access, cell *cell) bool {
	if cell.owner != access.Buffer || cell.state != written || clock[cell.writer] < cell.writerPlace {
		rules.misread(index, clock, access, cell)
		return false
	}
	if micro := rules.Instrs[index].MicroBatch; cell.micro != micro && cell.micro != None && micro != None && rules.flow.private[access.Buffer] {
		rules.faultAt("V7", index, "reads %q, which %s wrote for micro-batch %d; want what micro-batch %d wrote", rules.Buffers[access.Buffer].Name,
			rules.brief(rules.at(cell.writer, cell.writerPlace)), cell.micro, micro)
		return false
	}
	if access.Mode == Read {
		rules.addReader(cell, clock, rules.stream[index], rules.place[index])
	}
	return true
}

// addReader records a read. It replaces the last one if that happens before it.
func (rules *accessRules) addReader(cell *cell, clock []int32, stream, place int32) {
	switch {
	case cell.reader == none, cell.reader >= 0 && clock[cell.reader] >= cell.readerPlace:
		cell.reader, cell.readerPlace = stream, place
	case cell.reader >= 0:
		set := rules.newSet()
		rules.sets[set] = append(rules.sets[set], epoch{cell.reader, cell.readerPlace}, epoch{stream, place})
		cell.reader, cell.readerPlace = several, set
	default:
		set := rules.sets[cell.readerPlace]
		unseen := set[:0]
		for _, epoch := range set {
			if clock[epoch.stream] < epoch.place {
				unseen = append(unseen, epoch)
			}
		}
		rules.sets[cell.readerPlace] = append(unseen, epoch{stream, place})
	}
}

func (rules *accessRules) newSet() int32 {
	if last := len(rules.freeSets) - 1; last >= 0 {
		set := rules.freeSets[last]
		rules.freeSets = rules.freeSets[:last]
		rules.sets[set] = rules.sets[set][:0]
		return set
	}
	rules.sets = append(rules.sets, nil)
	return int32(len(rules.sets) - 1)
}

// write checks a write against V7 and V8: whatever reads or writes the same bytes happens before
// it. The cells are the buffer's from now on.
func (rules *accessRules) write(index int32, clock []int32, buffer int32, state state) {
	span := rules.spans[buffer]
	reported := false
	if span.own != None {
		reported = rules.writeCell(index, clock, buffer, &rules.cells[span.own], reported)
		rules.cells[span.own].state = state
	}
	for number := span.first; number < span.end; number++ {
		reported = rules.writeCell(index, clock, buffer, &rules.cells[number], reported)
	}
	rules.wrote[buffer] = true
}

// writeCell writes one cell, and reports whether a race has been reported.
func (rules *accessRules) writeCell(index int32, clock []int32, buffer int32, cell *cell, reported bool) bool {
	if other := rules.unordered(cell, clock); other != None && !reported {
		rules.race(index, other, buffer, cell.owner)
		reported = true
	}
	if cell.owner != buffer && !reported && rules.usedBy(cell, index) {
		rules.faultAt("V8", index, "writes %q and uses %q, which share bytes; want them apart", rules.Buffers[buffer].Name, rules.Buffers[cell.owner].Name)
		reported = true
	}
	if cell.reader == several {
		rules.freeSets = append(rules.freeSets, cell.readerPlace)
	}
	cell.reader = none
	cell.writer, cell.writerPlace = rules.stream[index], rules.place[index]
	instr := &rules.Instrs[index]
	cell.owner, cell.micro, cell.state = buffer, instr.MicroBatch, written
	cell.pass = passOf(instr)
	return reported
}

// usedBy reports whether the instruction itself has read or written a cell.
func (rules *accessRules) usedBy(cell *cell, index int32) bool {
	self := epoch{rules.stream[index], rules.place[index]}
	if cell.reader == several {
		return slices.Contains(rules.sets[cell.readerPlace], self)
	}
	return epoch{cell.writer, cell.writerPlace} == self || epoch{cell.reader, cell.readerPlace} == self
}

// unordered returns an access of the cell that does not happen before the clock, or None.
func (rules *accessRules) unordered(cell *cell, clock []int32) int32 {
	if cell.writer != none && clock[cell.writer] < cell.writerPlace {
		return rules.at(cell.writer, cell.writerPlace)
	}
	if cell.reader >= 0 && clock[cell.reader] < cell.readerPlace {
		return rules.at(cell.reader, cell.readerPlace)
	}
	if cell.reader == several {
		for _, epoch := range rules.sets[cell.readerPlace] {
			if clock[epoch.stream] < epoch.place {
				return rules.at(epoch.stream, epoch.place)
			}
		}
	}
	return None
}
