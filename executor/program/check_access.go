package program

import "slices"

// accessState is what the walk knows of cells and buffers.
type accessState struct {
	sets     [][]epoch
	freeSets []int32

	wrote []bool  // by buffer: something wrote it
	made  []int32 // by buffer: the load or zero that made it and that no unload has undone, or None
	use   gradientUse
	flow  flow
}

func newAccessState(check *check) accessState {
	count := len(check.Buffers)
	found := accessState{
		wrote: make([]bool, count), made: make([]int32, count), use: newGradientUse(check), flow: newFlow(check),
	}
	for i := range count {
		found.made[i] = None
	}
	return found
}

// visit holds one instruction to the rules, clock being what it has seen,
// itself included. What it reads is looked at before what it writes.
func (walker *walker) visit(index int32, clock []int32) {
	if earlier := walker.before[index]; earlier != None && !walker.seen(clock, earlier) {
		walker.outOfOrder(index, earlier)
	}
	instr := &walker.Instrs[index]
	accesses := walker.accesses(index)
	for ordinal, access := range accesses {
		if access.Mode != Write && walker.own(instr, access) && walker.read(index, clock, access) {
			walker.handedOn(index, ordinal, access)
		}
	}
	if instr.Op == Send && instr.Channel >= 0 {
		walker.fillSlot(index, clock)
	}
	for _, access := range accesses {
		if access.Mode != Read && walker.own(instr, access) {
			walker.write(index, clock, access.Buffer, written)
		}
	}
	walker.note(index, instr, accesses)
	if instr.Op == Free && instr.Channel >= 0 {
		walker.free(index, clock)
	}
	if instr.Op == Unload {
		walker.unload(index, clock, accesses)
	}
}

// own reports a buffer of the instruction's device; others are V5's.
func (check *check) own(instr *Instr, access Access) bool {
	return check.Buffers[access.Buffer].Device == instr.Device
}

// seen reports an instruction that happens before the one whose clock it is.
func (walker *walker) seen(clock []int32, index int32) bool {
	return clock[walker.stream[index]] >= walker.place[index]
}

// at is the instruction of an epoch.
func (walker *walker) at(stream, place int32) int32 {
	return walker.events[walker.starts[stream]+place-1]
}

// outOfOrder tells that what must happen before an instruction does not.
func (walker *walker) outOfOrder(index, earlier int32) {
	rule := "V1"
	switch walker.Instrs[index].Op { //nolint:exhaustive // the others are V1's
	case Send, Recv:
		rule = "V3"
	case Free:
		rule = "V4"
	}
	walker.faultAt(rule, index, "does not happen behind %s; want it behind", walker.brief(earlier))
}

// read holds a read, or the reading half of an accumulation, to V7 and V8, and
// reports whether it finds what it wants.
func (walker *walker) read(index int32, clock []int32, access Access) bool {
	span := walker.spans[access.Buffer]
	if span.own != None && !walker.readCell(index, clock, access, &walker.cells[span.own]) {
		return false
	}
	for number := span.first; number < span.end; number++ {
		if !walker.readCell(index, clock, access, &walker.cells[number]) {
			return false
		}
	}
	return true
}

// readCell reads one cell, and reports whether it holds what the reader wants.
func (walker *walker) readCell(index int32, clock []int32, access Access, cell *cell) bool {
	if cell.owner != access.Buffer || cell.state != written || clock[cell.writer] < cell.writerPlace {
		walker.misread(index, clock, access, cell)
		return false
	}
	if micro := walker.Instrs[index].MicroBatch; cell.micro != micro && cell.micro != None && micro != None && walker.flow.private[access.Buffer] {
		walker.faultAt("V7", index, "reads %q, which %s wrote for micro-batch %d; want what micro-batch %d wrote", walker.Buffers[access.Buffer].Name,
			walker.brief(walker.at(cell.writer, cell.writerPlace)), cell.micro, micro)
		return false
	}
	if access.Mode == Read {
		walker.addReader(cell, clock, walker.stream[index], walker.place[index])
	}
	return true
}

// addReader notes a read: in place of the last one where that happens before it.
func (walker *walker) addReader(cell *cell, clock []int32, stream, place int32) {
	switch {
	case cell.reader == none, cell.reader >= 0 && clock[cell.reader] >= cell.readerPlace:
		cell.reader, cell.readerPlace = stream, place
	case cell.reader >= 0:
		set := walker.newSet()
		walker.sets[set] = append(walker.sets[set], epoch{cell.reader, cell.readerPlace}, epoch{stream, place})
		cell.reader, cell.readerPlace = several, set
	default:
		set := walker.sets[cell.readerPlace]
		kept := set[:0]
		for _, epoch := range set {
			if clock[epoch.stream] < epoch.place {
				kept = append(kept, epoch)
			}
		}
		walker.sets[cell.readerPlace] = append(kept, epoch{stream, place})
	}
}

func (walker *walker) newSet() int32 {
	if last := len(walker.freeSets) - 1; last >= 0 {
		set := walker.freeSets[last]
		walker.freeSets = walker.freeSets[:last]
		walker.sets[set] = walker.sets[set][:0]
		return set
	}
	walker.sets = append(walker.sets, nil)
	return int32(len(walker.sets) - 1)
}

// write holds a write to V7 and V8: whatever reads or writes the same bytes
// happens before it. The cells are the buffer's from now on.
func (walker *walker) write(index int32, clock []int32, buffer int32, state state) {
	span := walker.spans[buffer]
	told := false
	if span.own != None {
		told = walker.writeCell(index, clock, buffer, &walker.cells[span.own], told)
		walker.cells[span.own].state = state
	}
	for number := span.first; number < span.end; number++ {
		told = walker.writeCell(index, clock, buffer, &walker.cells[number], told)
	}
	walker.wrote[buffer] = true
}

// writeCell writes one cell, and reports whether a race has been told.
func (walker *walker) writeCell(index int32, clock []int32, buffer int32, cell *cell, told bool) bool {
	if other := walker.unordered(cell, clock); other != None && !told {
		walker.race(index, other, buffer, cell.owner)
		told = true
	}
	if cell.owner != buffer && !told && walker.usedBy(cell, index) {
		walker.faultAt("V8", index, "writes %q and uses %q, which share bytes; want them apart", walker.Buffers[buffer].Name, walker.Buffers[cell.owner].Name)
		told = true
	}
	if cell.reader == several {
		walker.freeSets = append(walker.freeSets, cell.readerPlace)
	}
	cell.reader = none
	cell.writer, cell.writerPlace = walker.stream[index], walker.place[index]
	instr := &walker.Instrs[index]
	cell.owner, cell.micro, cell.state = buffer, instr.MicroBatch, written
	cell.pass = passOf(instr)
	return told
}

// usedBy reports a cell that the instruction itself has read or written.
func (walker *walker) usedBy(cell *cell, index int32) bool {
	self := epoch{walker.stream[index], walker.place[index]}
	if cell.reader == several {
		return slices.Contains(walker.sets[cell.readerPlace], self)
	}
	return epoch{cell.writer, cell.writerPlace} == self || epoch{cell.reader, cell.readerPlace} == self
}

// unordered is an access of the cell that does not happen before the clock.
func (walker *walker) unordered(cell *cell, clock []int32) int32 {
	if cell.writer != none && clock[cell.writer] < cell.writerPlace {
		return walker.at(cell.writer, cell.writerPlace)
	}
	if cell.reader >= 0 && clock[cell.reader] < cell.readerPlace {
		return walker.at(cell.reader, cell.readerPlace)
	}
	if cell.reader == several {
		for _, epoch := range walker.sets[cell.readerPlace] {
			if clock[epoch.stream] < epoch.place {
				return walker.at(epoch.stream, epoch.place)
			}
		}
	}
	return None
}
