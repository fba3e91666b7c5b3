package program

import (
	"fmt"
	"slices"
)

// slowCheck checks the rules of order and memory in the most obvious way. The table of
// happens-before is filled until nothing changes. Every pair of accesses is compared, and every
// byte of every read.
type slowCheck struct {
	*Program
	before [][]bool // instruction × instruction
	edges  [][]bool // before is their closure; of ends that meet, the send has those of both
	found  []string
	races  [][2]int
}

// touch is one way in which an instruction uses a buffer.
type touch struct {
	instr, buffer int
	kind          string // read, write, fill (a send into its slot), end
}

func slowly(program *Program) *slowCheck {
	slow := &slowCheck{Program: program}
	slow.close()
	for i := range slow.before {
		if slow.before[i][i] {
			slow.found = append(slow.found, "deadlock")
			return slow
		}
	}
	slow.channelOrder()
	touches := slow.touches()
	slow.pairs(touches)
	slow.reads(touches)
	slow.unloads(touches)
	return slow
}

// find is the instruction with a message, or -1.
func (slow *slowCheck) find(op Op, channel, sequence int32) int {
	return slices.IndexFunc(slow.Instrs, func(instr Instr) bool {
		return instr.Op == op && instr.Channel == channel && instr.Sequence == sequence
	})
}

func (slow *slowCheck) close() {
	count := len(slow.Instrs)
	slow.before = make([][]bool, count)
	for i := range slow.before {
		slow.before[i] = make([]bool, count)
	}
	for i, instr := range slow.Instrs {
		for j := range i {
			if slow.Instrs[j].Device == instr.Device && slow.Instrs[j].Stream == instr.Stream {
				slow.before[j][i] = true
			}
		}
		for _, wait := range slow.Waits[instr.FirstWait:instr.EndWait] {
			slow.before[wait.Instr][i] = true
		}
		if instr.Op != Send {
			continue
		}
		slots := slow.Channels[instr.Channel].Slots
		if recv := slow.find(Recv, instr.Channel, instr.Sequence); slots > 0 {
			slow.before[i][recv] = true
		} else {
			slow.before[i][recv], slow.before[recv][i] = true, true
		}
		if slots > 0 && instr.Sequence >= slots {
			slow.before[slow.find(Free, instr.Channel, instr.Sequence-slots)][i] = true
		}
	}
	slow.merge()
	for changed := true; changed; {
		changed = false
		for i := range count {
			for j := range count {
				for k := 0; slow.before[i][j] && k < count; k++ {
					if slow.before[j][k] && !slow.before[i][k] {
						slow.before[i][k], changed = true, true
					}
				}
			}
		}
	}
	// Ends that meet are one event: each is before the other, neither before itself
	// unless something else says so.
	for i := range count {
		if other := slow.meeting(i); other >= 0 {
			slow.before[i][i] = slow.cyclic(i, other)
		}
	}
}

// merge notes the edges before they are closed, between events.
func (slow *slowCheck) merge() {
	event := func(index int) int {
		if other := slow.meeting(index); other >= 0 && slow.Instrs[index].Op == Recv {
			return other
		}
		return index
	}
	slow.edges = make([][]bool, len(slow.before))
	for i := range slow.edges {
		slow.edges[i] = make([]bool, len(slow.before))
	}
	for i, row := range slow.before {
		for j, edge := range row {
			if edge && (slow.meeting(i) != j || slow.ordered(i, j)) {
				slow.edges[event(i)][event(j)] = true
			}
		}
	}
}

// ordered reports ends that meet and that have an order of their own too.
func (slow *slowCheck) ordered(i, j int) bool {
	a, b := slow.Instrs[i], slow.Instrs[j]
	return a.Device == b.Device && a.Stream == b.Stream && i < j ||
		slices.ContainsFunc(slow.Waits[b.FirstWait:b.EndWait], func(wait Wait) bool { return int(wait.Instr) == i })
}

// smallest returns the number of edges of the smallest cycle, 0 if there is none.
func (slow *slowCheck) smallest() int {
	best := 0
	for start := range slow.edges {
		distance := make([]int, len(slow.edges))
		for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
			for next, edge := range slow.edges[queue[0]] {
				if edge && distance[next] == 0 {
					distance[next] = distance[queue[0]] + 1
					queue = append(queue, next)
				}
			}
		}
		if found := distance[start]; found > 0 && (best == 0 || found < best) {
			best = found
		}
	}
	return best
}

// meeting is the other end of a message without slots, or -1.
func (slow *slowCheck) meeting(index int) int {
	instr := slow.Instrs[index]
	switch {
	case instr.Op == Send && slow.Channels[instr.Channel].Slots == 0:
		return slow.find(Recv, instr.Channel, instr.Sequence)
	case instr.Op == Recv && slow.Channels[instr.Channel].Slots == 0:
		return slow.find(Send, instr.Channel, instr.Sequence)
	}
	return -1
}

// cyclic reports an event of two ends that is before itself: over an instruction
// that is before and behind, or because the ends have an order of their own.
func (slow *slowCheck) cyclic(send, recv int) bool {
	for k := range slow.Instrs {
		if k != send && k != recv && slow.before[send][k] && slow.before[k][send] {
			return true
		}
	}
	return slow.ordered(send, recv) || slow.ordered(recv, send) || slow.ordered(send, send) || slow.ordered(recv, recv)
}

func (slow *slowCheck) fault(format string, args ...any) {
	slow.found = append(slow.found, fmt.Sprintf(format, args...))
}

// channelOrder: V3, V4.
func (slow *slowCheck) channelOrder() {
	for i, instr := range slow.Instrs {
		earlier := -1
		switch {
		case (instr.Op == Send || instr.Op == Recv) && instr.Sequence > 0:
			earlier = slow.find(instr.Op, instr.Channel, instr.Sequence-1)
		case instr.Op == Free:
			earlier = slow.find(Recv, instr.Channel, instr.Sequence)
		}
		if earlier >= 0 && !slow.before[earlier][i] {
			slow.fault("channel: %d not behind %d", i, earlier)
		}
	}
}

// touches are all uses of buffers, those of an instruction in the order in which
// they count.
func (slow *slowCheck) touches() []touch {
	var found []touch
	for i, instr := range slow.Instrs {
		accesses := slow.Accesses[instr.FirstAccess:instr.EndAccess]
		for _, access := range accesses {
			if access.Mode != Write {
				found = append(found, touch{i, int(access.Buffer), "read"})
			}
		}
		if instr.Op == Send && slow.Channels[instr.Channel].Slots > 0 {
			recv := slow.Instrs[slow.find(Recv, instr.Channel, instr.Sequence)]
			for _, access := range slow.Accesses[recv.FirstAccess:recv.EndAccess] {
				found = append(found, touch{i, int(access.Buffer), "fill"})
			}
		}
		for _, access := range accesses {
			if access.Mode != Read {
				found = append(found, touch{i, int(access.Buffer), "write"})
			}
			if instr.Op == Unload {
				found = append(found, touch{i, int(access.Buffer), "end"})
			}
		}
		if instr.Op == Free {
			recv := slow.Instrs[slow.find(Recv, instr.Channel, instr.Sequence)]
			for _, access := range slow.Accesses[recv.FirstAccess:recv.EndAccess] {
				found = append(found, touch{i, int(access.Buffer), "end"})
			}
		}
	}
	return found
}

func (slow *slowCheck) share(a, b int) bool {
	one, other := slow.Buffers[a], slow.Buffers[b]
	return one.Device == other.Device && one.Offset < other.Offset+other.Bytes && other.Offset < one.Offset+one.Bytes
}

// pairs: V7, V8, V4, V16, two uses are ordered when one of them writes or ends.
func (slow *slowCheck) pairs(touches []touch) {
	for i, a := range touches {
		for _, b := range touches[:i] {
			if a.instr == b.instr && a.buffer != b.buffer && (a.kind != "read" || b.kind != "read") && slow.share(a.buffer, b.buffer) &&
				a.kind != "end" && b.kind != "end" {
				slow.fault("both at once: %v %v", a, b)
			}
			if a.instr == b.instr || slow.before[a.instr][b.instr] || slow.before[b.instr][a.instr] {
				continue
			}
			ends := a.kind == "end" || b.kind == "end"
			if ends && a.buffer == b.buffer || !ends && (a.kind != "read" || b.kind != "read") && slow.share(a.buffer, b.buffer) {
				slow.fault("race: %v %v", a, b)
				slow.races = append(slow.races, [2]int{a.instr, b.instr})
			}
		}
	}
}

// latest is the last of touches that happen before a read and that count, or -1.
func (slow *slowCheck) latest(touches []touch, read touch, counts func(touch) bool) int {
	last := -1
	for i, other := range touches {
		if other.instr != read.instr && slow.before[other.instr][read.instr] && counts(other) &&
			(last < 0 || other.instr == touches[last].instr || slow.before[touches[last].instr][other.instr]) {
			last = i
		}
	}
	return last
}

// reads: every read finds what was written into its buffer, whole and not ended.
func (slow *slowCheck) reads(touches []touch) {
	for _, read := range touches {
		if read.kind != "read" {
			continue
		}
		own := slow.latest(touches, read, func(other touch) bool { return other.kind != "read" && other.buffer == read.buffer })
		if own < 0 || touches[own].kind != "write" {
			slow.fault("unwritten: %v", read)
			continue
		}
		buffer := slow.Buffers[read.buffer]
		for at := buffer.Offset; at < buffer.Offset+buffer.Bytes; at++ {
			last := slow.latest(touches, read, func(other touch) bool {
				over := slow.Buffers[other.buffer]
				return (other.kind == "write" || other.kind == "fill") && over.Device == buffer.Device && over.Offset <= at && at < over.Offset+over.Bytes
			})
			if touches[last].buffer != read.buffer {
				slow.fault("overwritten: %v by %v", read, touches[last])
				break
			}
			mine, theirs := slow.Instrs[read.instr].MicroBatch, slow.Instrs[touches[last].instr].MicroBatch
			if (buffer.Class == Stream || buffer.Class == Slot) && mine != None && theirs != None && mine != theirs {
				slow.fault("stale: %v by %v", read, touches[last])
				break
			}
		}
	}
}

// unloads: what load and zero make is unloaded behind.
func (slow *slowCheck) unloads(touches []touch) {
	for _, made := range touches {
		if op := slow.Instrs[made.instr].Op; made.kind != "write" || op != Load {
			continue
		}
		if !slices.ContainsFunc(touches, func(other touch) bool {
			return other.kind == "end" && other.buffer == made.buffer && slow.Instrs[other.instr].Op == Unload && slow.before[made.instr][other.instr]
		}) {
			slow.fault("never unloaded: %v", made)
		}
	}
}
