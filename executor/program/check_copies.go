package program

// copies checks copies between device and host against V10, but for the order of reads.
func (check *check) copies() {
	for i := range check.Instrs {
		instr, index := &check.Instrs[i], int32(i)
		moves := instr.Op == Store || instr.Op == Fetch
		var hosts int
		var host, arena int64
		for _, access := range check.accesses(index) {
			buffer := &check.Buffers[access.Buffer]
			inHost := buffer.Class == Host
			switch {
			case !moves && inHost:
				check.faultAt("V10", index, "touches %q, which is in host memory; want it in the arena, by a fetch", buffer.Name)
			case moves && (access.Mode == Accumulate || (access.Mode == Write) != (inHost == (instr.Op == Store))):
				check.faultAt("V10", index, "touches %q in the wrong way; want a store to read the arena and write host memory, and a fetch the opposite", buffer.Name)
			case inHost:
				hosts, host = hosts+1, host+buffer.Bytes
			default:
				arena += buffer.Bytes
			}
		}
		if moves && (hosts != 1 || host != arena) {
			check.faultAt("V10", index, "copies %d bytes of the arena and %d bytes of %d buffers of host memory; want one buffer with as many bytes", arena, host, hosts)
		}
		if moves && instr.MicroBatch < 0 {
			check.faultAt("V10", index, "names no micro-batch; want that of what it copies")
		}
	}
}

// leave marks what a store has read: it may be read again once a fetch has written it.
func (rules *accessRules) leave(accesses []Access) {
	for _, access := range accesses {
		if rules.Buffers[access.Buffer].Class == Host {
			continue
		}
		span := rules.spans[access.Buffer]
		for number := span.first; number < span.end; number++ {
			rules.cells[number].state = stored
		}
	}
}
