package program

// misread reports why a buffer cannot be read. cell is the first of its cells without the buffer's
// contents.
func (rules *accessRules) misread(index int32, clock []int32, access Access, cell *cell) {
	name := rules.Buffers[access.Buffer].Name
	switch op := rules.Instrs[index].Op; {
	case !rules.wrote[access.Buffer] && op == Unload:
		rules.faultAt("V16", index, "unloads %q, which nothing made; want a load before", name)
	case !rules.wrote[access.Buffer] && access.Mode == Accumulate && rules.use.gradient[access.Buffer]:
		rules.faultAt("V12", index, "adds to gradient %q, which holds nothing; want the first of a step to write it (>%s), or a zero before", name, name)
	case !rules.wrote[access.Buffer]:
		rules.faultAt("V7", index, "reads %q, which nothing before it writes; want a write that happens before", name)
	case clock[cell.writer] < cell.writerPlace:
		rules.race(index, rules.at(cell.writer, cell.writerPlace), access.Buffer, cell.owner)
	case cell.owner != access.Buffer:
		by := rules.at(cell.writer, cell.writerPlace)
		rules.faultAt("V8", index, "reads %q, whose bytes %s has overwritten with %q; want them apart, or the write behind", name,
			rules.brief(by), rules.Buffers[cell.owner].Name)
	case cell.state == freed:
		rules.faultAt("V4", index, "reads %q after %s; want the free behind the last reader", name, rules.brief(rules.at(cell.writer, cell.writerPlace)))
	case cell.state == underway:
		rules.faultAt("V4", index, "reads %q, which %s fills, before a recv; want it behind", name, rules.brief(rules.at(cell.writer, cell.writerPlace)))
	case cell.state == stored:
		rules.faultAt("V10", index, "reads %q, which a store has left to host memory; want a fetch before", name)
	case op == Unload:
		rules.faultAt("V16", index, "unloads %q again, after %s; want it once", name, rules.brief(rules.at(cell.writer, cell.writerPlace)))
	default:
		rules.faultAt("V16", index, "uses %q after %s; want the unload behind all uses", name, rules.brief(rules.at(cell.writer, cell.writerPlace)))
	}
}

// race reports that nothing orders two instructions, and one of them writes what the other touches.
// The rule is V7 for one buffer and V8 for two that share bytes. It is V4 if one instruction is a
// free, and V16 if one is an unload. The fault is of the later line, which should wait.
func (rules *accessRules) race(index, other, buffer, owner int32) {
	if rules.Instrs[index].Device == rules.Instrs[other].Device && index < other {
		index, other, buffer, owner = other, index, owner, buffer
	}
	name := rules.Buffers[buffer].Name
	for _, one := range []int32{index, other} {
		rule := ""
		switch rules.Instrs[one].Op { //nolint:exhaustive // those that end buffers
		case Free:
			rule = "V4"
		case Unload:
			rule = "V16"
		}
		if rule != "" {
			rules.faultAt(rule, index, "nothing orders it and %s, and one of them ends %q, which the other uses; want %q", rules.brief(other), name, rules.wait(other))
			return
		}
	}
	if owner == buffer {
		rules.faultAt("V7", index, "nothing orders it and %s, which both use %q, one of them writing; want %q", rules.brief(other), name, rules.wait(other))
		return
	}
	rules.faultAt("V8", index, "nothing orders it and %s; %q and %q share bytes, so that both would be live at once; want %q, or the buffers apart",
		rules.brief(other), name, rules.Buffers[owner].Name, rules.wait(other))
}

// fillSlot is the write of a send on the device that it sends to, into the slot of its message's
// receive. Without slots the two are one event, and the receive's own write is that.
func (rules *accessRules) fillSlot(index int32, clock []int32) {
	instr := &rules.Instrs[index]
	recvs := rules.channels[instr.Channel].recv
	if int(instr.Sequence) >= len(recvs) || recvs[instr.Sequence] == None || rules.Channels[instr.Channel].Slots == 0 {
		return
	}
	if rules.channels[instr.Channel].send[instr.Sequence] != index {
		return // the same sequence twice
	}
	for _, access := range rules.accesses(recvs[instr.Sequence]) {
		if access.Mode == Write && rules.Buffers[access.Buffer].Device == rules.Channels[instr.Channel].To {
			rules.write(index, clock, access.Buffer, underway)
		}
	}
}

// free ends what a receive wrote: all reads of it happen before.
func (rules *accessRules) free(index int32, clock []int32) {
	instr := &rules.Instrs[index]
	recvs := rules.channels[instr.Channel].recv
	if int(instr.Sequence) >= len(recvs) || recvs[instr.Sequence] == None {
		return
	}
	for _, access := range rules.accesses(recvs[instr.Sequence]) {
		if access.Mode == Write {
			rules.end(index, clock, access.Buffer, freed)
		}
	}
}

// unload ends what a load or a zero made.
func (rules *accessRules) unload(index int32, clock []int32, accesses []Access) {
	for _, access := range accesses {
		rules.end(index, clock, access.Buffer, unloaded)
		rules.made[access.Buffer] = None
	}
}

// end makes a buffer unreadable: everything that touches it happens before.
func (rules *accessRules) end(index int32, clock []int32, buffer int32, state state) {
	if own := rules.spans[buffer].own; own != None && rules.cells[own].owner == buffer {
		rules.writeCell(index, clock, buffer, &rules.cells[own], false)
		rules.cells[own].state = state
	}
}

// note records loads that need an unload, and uses of gradients.
func (rules *accessRules) note(index int32, instr *Instr, accesses []Access) {
	if instr.Op == Load || instr.Op == Zero {
		for _, access := range accesses {
			// A zero in a step, of a gradient say, needs no unload.
			if access.Mode != Read && (instr.Op == Load || rules.Buffers[access.Buffer].Class.Throughout()) {
				rules.made[access.Buffer] = index
			}
		}
	}
	rules.use.note(rules.check, index)
}

// atEnd: V16, whatever a load or a zero made is unloaded.
func (rules *accessRules) atEnd() {
	for buffer, made := range rules.made {
		if made != None {
			rules.faultAt("V16", made, "%q is never unloaded; want an unload at the end", rules.Buffers[buffer].Name)
		}
	}
}
