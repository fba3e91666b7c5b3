package program

// copies checks copies between device and host against V10, but for the order of reads.
func (check *check) copies() {
	for i := range check.Instrs {
		instr, index := &check.Instrs[i], int32(i)
		if instr.Op == Store || instr.Op == Fetch {
			check.copy(index, instr)
			continue
		}
		for _, access := range check.accesses(index) {
			if buffer := &check.Buffers[access.Buffer]; buffer.Class == Host {
				check.faultAt("V10", index, "touches %q, which is in host memory; want it in the arena, by a fetch", buffer.Name)
			}
		}
	}
}

// copy checks one copy: its way, its bytes and its micro-batch.
func (check *check) copy(index int32, instr *Instr) {
	var hosts int
	var host, arena int64
	for _, access := range check.accesses(index) {
		buffer := &check.Buffers[access.Buffer]
		inHost := buffer.Class == Host
		switch writes := inHost == (instr.Op == Store); {
		case access.Mode == Accumulate || (access.Mode == Write) != writes:
			check.faultAt("V10", index, "touches %q in the wrong way; want a store to read the arena and write host memory, and a fetch the opposite", buffer.Name)
		case inHost:
			hosts, host = hosts+1, host+buffer.Bytes
		default:
			arena += buffer.Bytes
		}
	}
	if hosts != 1 || host != arena {
		check.faultAt("V10", index, "copies %d bytes of the arena and %d bytes of %d buffers of host memory; want one buffer with as many bytes", arena, host, hosts)
	}
	if instr.MicroBatch < 0 {
		check.faultAt("V10", index, "names no micro-batch; want that of what it copies")
	}
}

// leave marks what a store has read: it may be read again once a fetch has written it.
func (rules *accessRules) leave(instr *Instr, accesses []Access) {
	if instr.Op != Store {
		return
	}
	for _, access := range accesses { // the store has yet to write host memory
		span := rules.spans[access.Buffer]
		for number := span.first; number < span.end; number++ {
			rules.cells[number].state = stored
		}
	}
}
