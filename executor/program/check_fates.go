package program

// misread tells why a buffer cannot be read: by the first of its cells that is
// not what was written into it.
func (walker *walker) misread(index int32, clock []int32, access Access, cell *cell) {
	name := walker.Buffers[access.Buffer].Name
	switch op := walker.Instrs[index].Op; {
	case !walker.wrote[access.Buffer] && op == Unload:
		walker.faultAt("V16", index, "unloads %q, which nothing made; want a load before", name)
	case !walker.wrote[access.Buffer] && access.Mode == Accumulate && walker.use.gradient[access.Buffer]:
		walker.faultAt("V12", index, "adds to gradient %q, which holds nothing; want the first of a step to write it (>%s), or a zero before", name, name)
	case !walker.wrote[access.Buffer]:
		walker.faultAt("V7", index, "reads %q, which nothing before it writes; want a write that happens before", name)
	case clock[cell.writer] < cell.writerPlace:
		walker.race(index, walker.at(cell.writer, cell.writerPlace), access.Buffer, cell.owner)
	case cell.owner != access.Buffer:
		by := walker.at(cell.writer, cell.writerPlace)
		walker.faultAt("V8", index, "reads %q, whose bytes %s has overwritten with %q; want them apart, or the write behind", name,
			walker.brief(by), walker.Buffers[cell.owner].Name)
	case cell.state == freed:
		walker.faultAt("V4", index, "reads %q after %s; want the free behind the last reader", name, walker.brief(walker.at(cell.writer, cell.writerPlace)))
	case cell.state == underway:
		walker.faultAt("V4", index, "reads %q, which %s fills, before a recv; want it behind", name, walker.brief(walker.at(cell.writer, cell.writerPlace)))
	case op == Unload:
		walker.faultAt("V16", index, "unloads %q again, after %s; want it once", name, walker.brief(walker.at(cell.writer, cell.writerPlace)))
	default:
		walker.faultAt("V16", index, "uses %q after %s; want the unload behind all uses", name, walker.brief(walker.at(cell.writer, cell.writerPlace)))
	}
}

// race tells that nothing orders two instructions of which one writes what the
// other touches: of one buffer V7, of two that share bytes V8. A free that a
// reader may come behind is V4's, an unload V16's. It is the later of two lines
// that should wait.
func (walker *walker) race(index, other, buffer, owner int32) {
	if walker.Instrs[index].Device == walker.Instrs[other].Device && index < other {
		index, other, buffer, owner = other, index, owner, buffer
	}
	name := walker.Buffers[buffer].Name
	for _, one := range []int32{index, other} {
		rule := ""
		switch walker.Instrs[one].Op { //nolint:exhaustive // those that end buffers
		case Free:
			rule = "V4"
		case Unload:
			rule = "V16"
		}
		if rule != "" {
			walker.faultAt(rule, index, "nothing orders it and %s, and one of them ends %q, which the other uses; want %q", walker.brief(other), name, walker.wait(other))
			return
		}
	}
	if owner == buffer {
		walker.faultAt("V7", index, "nothing orders it and %s, which both use %q, one of them writing; want %q", walker.brief(other), name, walker.wait(other))
		return
	}
	walker.faultAt("V8", index, "nothing orders it and %s; %q and %q share bytes, so that both would be live at once; want %q, or the buffers apart",
		walker.brief(other), name, walker.Buffers[owner].Name, walker.wait(other))
}

// fillSlot is the write that a send does on the device it sends to: of the slot
// that the receive of its message names, from when the slot is free. Where both
// are one event, the receive's own write is that.
func (walker *walker) fillSlot(index int32, clock []int32) {
	instr := &walker.Instrs[index]
	recvs := walker.channels[instr.Channel].recv
	if int(instr.Sequence) >= len(recvs) || recvs[instr.Sequence] == None || walker.Channels[instr.Channel].Slots == 0 {
		return
	}
	if walker.channels[instr.Channel].send[instr.Sequence] != index {
		return // the same sequence twice
	}
	for _, access := range walker.accesses(recvs[instr.Sequence]) {
		if access.Mode == Write && walker.Buffers[access.Buffer].Device == walker.Channels[instr.Channel].To {
			walker.write(index, clock, access.Buffer, underway)
		}
	}
}

// free ends what a receive wrote: what reads it happens before.
func (walker *walker) free(index int32, clock []int32) {
	instr := &walker.Instrs[index]
	recvs := walker.channels[instr.Channel].recv
	if int(instr.Sequence) >= len(recvs) || recvs[instr.Sequence] == None {
		return
	}
	for _, access := range walker.accesses(recvs[instr.Sequence]) {
		if access.Mode == Write {
			walker.end(index, clock, access.Buffer, freed)
		}
	}
}

// unload ends what load and zero made.
func (walker *walker) unload(index int32, clock []int32, accesses []Access) {
	for _, access := range accesses {
		walker.end(index, clock, access.Buffer, unloaded)
		walker.made[access.Buffer] = None
	}
}

// end makes a buffer unreadable: all that touches it happens before.
func (walker *walker) end(index int32, clock []int32, buffer int32, state state) {
	if own := walker.spans[buffer].own; own != None && walker.cells[own].owner == buffer {
		walker.writeCell(index, clock, buffer, &walker.cells[own], false)
		walker.cells[own].state = state
	}
}

// note remembers what an instruction makes of its buffers besides bytes.
func (walker *walker) note(index int32, instr *Instr, accesses []Access) {
	if instr.Op == Load || instr.Op == Zero {
		for _, access := range accesses {
			// What zero writes in a step, a gradient say, ends with it.
			if access.Mode != Read && (instr.Op == Load || walker.Buffers[access.Buffer].Class.Throughout()) {
				walker.made[access.Buffer] = index
			}
		}
	}
	walker.use.note(walker.check, index)
}

// atEnd: V16, whatever load and zero made is unloaded.
func (walker *walker) atEnd() {
	for buffer, made := range walker.made {
		if made != None {
			walker.faultAt("V16", made, "%q is never unloaded; want an unload at the end", walker.Buffers[buffer].Name)
		}
	}
}
