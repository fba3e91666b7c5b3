package program

// messages holds channels to V3, V4 and V5 as far as single lines tell: every
// sequence once at every end, in slots that are those of the channel. Whether
// order and readers agree with that is seen when the program is walked over.
func (check *check) messages() {
	check.sequences()
	for i := range check.channels {
		channel := int32(i)
		check.ends(channel)
		check.edges(channel)
		check.sizes(channel)
		check.slots(channel)
	}
}

// sequences sorts the instructions of channels. A channel has as many messages
// as the op that is there most often; the arrays are no longer, whatever numbers
// a file names.
func (check *check) sequences() {
	counts := make([][3]int32, len(check.Channels))
	for i := range check.Instrs {
		instr := &check.Instrs[i]
		if instr.Op != Send && instr.Op != Recv && instr.Op != Free {
			continue
		}
		if instr.Channel == None {
			check.faultAt(ruleOfEnd(instr.Op), int32(i), "names no message; want CHANNEL#SEQUENCE")
		}
		if instr.Channel >= 0 {
			counts[instr.Channel][endOf(instr.Op)]++
		}
	}
	check.channels = make([]messages, len(check.Channels))
	for i := range check.channels {
		most := max(counts[i][0], counts[i][1], counts[i][2])
		all := make([]int32, 3*most)
		for j := range all {
			all[j] = None
		}
		check.channels[i] = messages{send: all[:most], recv: all[most : 2*most], free: all[2*most:]}
	}
	for i := range check.Instrs {
		instr := &check.Instrs[i]
		if (instr.Op == Send || instr.Op == Recv || instr.Op == Free) && instr.Channel >= 0 {
			check.enlist(int32(i), instr)
		}
	}
}

func endOf(op Op) int {
	switch op {
	case Send:
		return 0
	case Recv:
		return 1
	default:
		return 2
	}
}

// ruleOfEnd: sends and receives are V3's, frees V4's.
func ruleOfEnd(op Op) string {
	if op == Free {
		return "V4"
	}
	return "V3"
}

func (of *messages) list(op Op) []int32 {
	return [...][]int32{of.send, of.recv, of.free}[endOf(op)]
}

// enlist puts an instruction where its sequence is.
func (check *check) enlist(index int32, instr *Instr) {
	channel, list := &check.Channels[instr.Channel], check.channels[instr.Channel].list(instr.Op)
	end := channel.To
	if instr.Op == Send {
		end = channel.From
	}
	if instr.Device != end {
		check.faultAt(ruleOfEnd(instr.Op), index, "channel %q goes from device %d to device %d; want it on device %d", channel.Name,
			check.Devices[channel.From].ID, check.Devices[channel.To].ID, check.Devices[end].ID)
	}
	switch {
	case int(instr.Sequence) >= len(list):
		check.faultAt(ruleOfEnd(instr.Op), index, "channel %q has %d messages; want sequences 0 to %d", channel.Name, len(list), len(list)-1)
	case list[instr.Sequence] != None:
		check.faultAt(ruleOfEnd(instr.Op), index, "the same as %s; want each sequence once", check.Place(list[instr.Sequence]))
	default:
		list[instr.Sequence] = index
	}
}

// ends: every sequence has its send, its recv, its free, in that order, and
// those before it.
func (check *check) ends(channel int32) {
	of, name := &check.channels[channel], check.Channels[channel].Name
	for sequence := range of.send {
		for _, op := range []Op{Send, Recv, Free} {
			list, device := of.list(op), check.Channels[channel].To
			if op == Send {
				device = check.Channels[channel].From
			}
			if list[sequence] == None {
				check.faultOn(ruleOfEnd(op), device, "message %s#%d has no %s; want one", name, sequence, op)
				continue
			}
			if op == Free {
				check.before[list[sequence]] = of.recv[sequence]
			} else if sequence > 0 {
				check.before[list[sequence]] = list[sequence-1]
			}
		}
	}
}

// edges: a message is received when it is sent, and sent when its slot is free.
// Without slots both ends are one event, and each names the other.
func (check *check) edges(channel int32) {
	of, slots := &check.channels[channel], int(check.Channels[channel].Slots)
	for sequence, send := range of.send {
		recv := of.recv[sequence]
		if recv != None {
			check.follows[recv] = send
		}
		switch {
		case send == None:
		case slots == 0:
			check.follows[send] = recv
		case sequence >= slots:
			check.follows[send] = of.free[sequence-slots]
		}
	}
}

// sizes: V5, what is sent fits, slots are as large as messages, and both ends
// speak of one micro-batch.
func (check *check) sizes(channel int32) {
	of, bytes := &check.channels[channel], check.Channels[channel].Bytes
	for sequence, send := range of.send {
		recv := of.recv[sequence]
		if send != None {
			if sent, named := check.bytes(send, Read); named && sent > bytes {
				check.faultAt("V5", send, "sends %d bytes; messages of channel %q have at most %d", sent, check.Channels[channel].Name, bytes)
			}
		}
		if recv == None {
			continue
		}
		if received, named := check.bytes(recv, Write); named && received != bytes {
			check.faultAt("V5", recv, "receives into %d bytes; want a slot of %d, as channel %q has", received, bytes, check.Channels[channel].Name)
		}
		if send == None {
			continue
		}
		if from, to := check.Instrs[send].MicroBatch, check.Instrs[recv].MicroBatch; from >= 0 && to >= 0 && from != to {
			check.faultAt("V5", recv, "receives micro-batch %d, and %s sends micro-batch %d; want the same", to, check.Place(send), from)
		}
	}
}

// bytes adds up the buffers that an instruction touches in one way, and says
// whether there are any.
func (check *check) bytes(index int32, mode Mode) (sum int64, named bool) {
	for _, access := range check.accesses(index) {
		if access.Mode == mode {
			sum += check.Buffers[access.Buffer].Bytes
			named = true
		}
	}
	return sum, named
}

// slots: V4, message k lies in slot k mod slots: the same buffer whenever that
// is the same, another one whenever it is not.
func (check *check) slots(channel int32) {
	of, slots := &check.channels[channel], int(check.Channels[channel].Slots)
	if slots == 0 {
		return
	}
	first := make([]int32, min(slots, len(of.recv))) // the receive that showed a slot's buffer
	for i := range first {
		first[i] = None
	}
	for sequence, recv := range of.recv {
		buffer := check.slotOf(recv)
		if buffer == None {
			continue
		}
		slot := sequence % slots
		if first[slot] == None {
			first[slot] = recv
		} else if want := check.slotOf(first[slot]); want != buffer {
			check.faultAt("V4", recv, "receives into %q; slot %d of channel %q is %q, as %s has it", check.Buffers[buffer].Name, slot,
				check.Channels[channel].Name, check.Buffers[want].Name, check.Place(first[slot]))
		}
	}
	owner := make(map[int32]int)
	for slot, recv := range first {
		if recv == None {
			continue
		}
		buffer := check.slotOf(recv)
		if other, twice := owner[buffer]; twice {
			check.faultAt("V4", recv, "receives into %q, which is slot %d of channel %q already; want a buffer for each of its %d slots",
				check.Buffers[buffer].Name, other, check.Channels[channel].Name, slots)
		}
		owner[buffer] = slot
	}
}

// slotOf is the buffer that a receive writes, or None.
func (check *check) slotOf(recv int32) int32 {
	if recv == None {
		return None
	}
	for _, access := range check.accesses(recv) {
		if access.Mode == Write {
			return access.Buffer
		}
	}
	return None
}
