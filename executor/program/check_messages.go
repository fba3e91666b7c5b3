package program

// channelRules checks the messages of channels: V3, V4 and V5.
type channelRules struct{ *check }

// messages checks channels against V3, V4 and V5 as far as single lines show: every sequence once
// at every end, in the channel's slots. The walk over the program checks order and readers.
func (rules *channelRules) messages() {
	rules.sequences()
	for i := range rules.channels {
		channel := int32(i)
		rules.ends(channel)
		rules.edges(channel)
		rules.sizes(channel)
		rules.slots(channel)
	}
}

// sequences sorts the instructions of channels. A channel has as many messages as its most frequent
// op. The arrays are no longer, whatever numbers a file names.
func (rules *channelRules) sequences() {
	counts := make([][3]int32, len(rules.Channels))
	for i := range rules.Instrs {
		instr := &rules.Instrs[i]
		if instr.Op != Send && instr.Op != Recv && instr.Op != Free {
			continue
		}
		if instr.Channel == None {
			rules.faultAt(ruleOfEnd(instr.Op), int32(i), "names no message; want CHANNEL#SEQUENCE")
		}
		if instr.Channel >= 0 {
			counts[instr.Channel][endOf(instr.Op)]++
		}
	}
	rules.channels = make([]messages, len(rules.Channels))
	for i := range rules.channels {
		most := max(counts[i][0], counts[i][1], counts[i][2])
		all := make([]int32, 3*most)
		for j := range all {
			all[j] = None
		}
		rules.channels[i] = messages{send: all[:most], recv: all[most : 2*most], free: all[2*most:]}
	}
	for i := range rules.Instrs {
		instr := &rules.Instrs[i]
		if (instr.Op == Send || instr.Op == Recv || instr.Op == Free) && instr.Channel >= 0 {
			rules.enlist(int32(i), instr)
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

// enlist puts an instruction at its sequence.
func (rules *channelRules) enlist(index int32, instr *Instr) {
	channel, list := &rules.Channels[instr.Channel], rules.channels[instr.Channel].list(instr.Op)
	end := channel.To
	if instr.Op == Send {
		end = channel.From
	}
	if instr.Device != end {
		rules.faultAt(ruleOfEnd(instr.Op), index, "channel %q goes from device %d to device %d; want it on device %d", channel.Name,
			rules.Devices[channel.From].ID, rules.Devices[channel.To].ID, rules.Devices[end].ID)
	}
	switch {
	case int(instr.Sequence) >= len(list):
		rules.faultAt(ruleOfEnd(instr.Op), index, "channel %q has %d messages; want sequences 0 to %d", channel.Name, len(list), len(list)-1)
	case list[instr.Sequence] != None:
		rules.faultAt(ruleOfEnd(instr.Op), index, "the same as %s; want each sequence once", rules.Place(list[instr.Sequence]))
	default:
		list[instr.Sequence] = index
	}
}

// ends: every sequence has a send, a recv and a free. A free comes after its recv, a send or a recv
// after that of the sequence before.
func (rules *channelRules) ends(channel int32) {
	of, name := &rules.channels[channel], rules.Channels[channel].Name
	for sequence := range of.send {
		for _, op := range []Op{Send, Recv, Free} {
			list, device := of.list(op), rules.Channels[channel].To
			if op == Send {
				device = rules.Channels[channel].From
			}
			if list[sequence] == None {
				rules.faultOn(ruleOfEnd(op), device, "message %s#%d has no %s; want one", name, sequence, op)
				continue
			}
			if op == Free {
				rules.before[list[sequence]] = of.recv[sequence]
			} else if sequence > 0 {
				rules.before[list[sequence]] = list[sequence-1]
			}
		}
	}
}

// edges: a message is received after it is sent, and sent after its slot is free. Without slots
// both ends are one event, and each names the other.
func (rules *channelRules) edges(channel int32) {
	of, slots := &rules.channels[channel], int(rules.Channels[channel].Slots)
	for sequence, send := range of.send {
		recv := of.recv[sequence]
		if recv != None {
			rules.follows[recv] = send
		}
		switch {
		case send == None:
		case slots == 0:
			rules.follows[send] = recv
		case sequence >= slots:
			rules.follows[send] = of.free[sequence-slots]
		}
	}
}

// sizes: V5, a message fits into its channel, slots are as large as messages, and both ends are of
// one micro-batch.
func (rules *channelRules) sizes(channel int32) {
	of, bytes := &rules.channels[channel], rules.Channels[channel].Bytes
	for sequence, send := range of.send {
		recv := of.recv[sequence]
		if send != None {
			if sent, named := rules.bytes(send, Read); named && sent > bytes {
				rules.faultAt("V5", send, "sends %d bytes; messages of channel %q have at most %d", sent, rules.Channels[channel].Name, bytes)
			}
		}
		if recv == None {
			continue
		}
		if received, named := rules.bytes(recv, Write); named && received != bytes {
			rules.faultAt("V5", recv, "receives into %d bytes; want a slot of %d, as channel %q has", received, bytes, rules.Channels[channel].Name)
		}
		if send == None {
			continue
		}
		if from, to := rules.Instrs[send].MicroBatch, rules.Instrs[recv].MicroBatch; from >= 0 && to >= 0 && from != to {
			rules.faultAt("V5", recv, "receives micro-batch %d, and %s sends micro-batch %d; want the same", to, rules.Place(send), from)
		}
	}
}

// bytes adds up the buffers that an instruction accesses in one mode, and reports whether there are
// any.
func (rules *channelRules) bytes(index int32, mode Mode) (sum int64, named bool) {
	for _, access := range rules.accesses(index) {
		if access.Mode == mode {
			sum += rules.Buffers[access.Buffer].Bytes
			named = true
		}
	}
	return sum, named
}

// slots checks V4: message k is in slot k mod slots. Each slot has one buffer, and no two share
// one.
func (rules *channelRules) slots(channel int32) {
	of, slots := &rules.channels[channel], int(rules.Channels[channel].Slots)
	if slots == 0 {
		return
	}
	first := make([]int32, min(slots, len(of.recv))) // the receive that showed a slot's buffer
	for i := range first {
		first[i] = None
	}
	for sequence, recv := range of.recv {
		buffer := rules.slotOf(recv)
		if buffer == None {
			continue
		}
		slot := sequence % slots
		if first[slot] == None {
			first[slot] = recv
		} else if want := rules.slotOf(first[slot]); want != buffer {
			rules.faultAt("V4", recv, "receives into %q; slot %d of channel %q is %q, as %s has it", rules.Buffers[buffer].Name, slot,
				rules.Channels[channel].Name, rules.Buffers[want].Name, rules.Place(first[slot]))
		}
	}
	owner := make(map[int32]int)
	for slot, recv := range first {
		if recv == None {
			continue
		}
		buffer := rules.slotOf(recv)
		if other, twice := owner[buffer]; twice {
			rules.faultAt("V4", recv, "receives into %q, which is slot %d of channel %q already; want a buffer for each of its %d slots",
				rules.Buffers[buffer].Name, other, rules.Channels[channel].Name, slots)
		}
		owner[buffer] = slot
	}
}

// slotOf returns the buffer that a receive writes, or None.
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
