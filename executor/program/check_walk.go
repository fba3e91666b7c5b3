package program

// maxClocks is the most streams that are checked, which bounds the memory of clocks. A clock has a
// number for each stream, and every stream may have one.
const maxClocks = 1 << 13

// walker visits all instructions in an order that the program allows, and knows at each which
// others happen before it.
//
// Happens-before is the order of streams, waits, messages and freed slots, and what follows from
// these. A stream's clock says how far it has seen every stream (vector clocks: Fidge 1988, Mattern
// 1989). An instruction at place p of stream s happens before the current one if and only if
// clock[s] ≥ p.
//
// Streams run as far as they can, one after another. A stream that must wait is queued at the
// instruction that it waits for. Only instructions that others wait for keep a copy of their clock,
// until the last of these has run. A wait for something that was seen already costs a comparison.
// If no stream can continue, those left over are deadlocked.
type walker struct {
	*check
	access *accessRules

	clocks [][]int32 // by stream

	uses    []int32 // by instruction: how many of other streams wait for it
	clockOf []int32 // by instruction: the index of its clock in copies, from 1
	copies  [][]int32
	unused  []int32 // of copies

	sleepers []int32 // by instruction: the stream that waits for it, from 1
	next     []int32 // by stream: another one that waits for the same instruction
	asleep   []bool  // by stream: it is among sleepers
	ready    []int32 // streams; one may be there twice
}

// walk checks the program against the rules of order as far as it runs, and reports whether all of
// it does.
func (check *check) walk() bool {
	streams := len(check.starts) - 1
	if streams > maxClocks {
		check.faultOn("V6", None, "%d streams; the order of at most %d is looked at", streams, maxClocks)
		return true
	}
	count := len(check.Instrs)
	check.cursor = make([]int32, streams)
	walker := &walker{
		check: check, access: newAccessRules(check),
		clocks: make([][]int32, streams),
		uses:   make([]int32, count), clockOf: make([]int32, count),
		sleepers: make([]int32, count), next: make([]int32, streams), asleep: make([]bool, streams),
	}
	walker.countUses()
	for stream := range streams {
		walker.clocks[stream] = make([]int32, streams)
		walker.ready = append(walker.ready, int32(stream))
	}
	for len(walker.ready) > 0 {
		stream := walker.ready[len(walker.ready)-1]
		walker.ready = walker.ready[:len(walker.ready)-1]
		walker.run(stream)
	}
	for stream, ran := range walker.cursor {
		if ran < check.starts[stream+1]-check.starts[stream] {
			return false
		}
	}
	walker.access.atEnd()
	(&stepRules{check, &walker.access.use}).gradientsUsed()
	return true
}

// countUses counts how many instructions of other streams wait for each.
func (walker *walker) countUses() {
	for i := range walker.Instrs {
		index := int32(i)
		instr := &walker.Instrs[i]
		for _, wait := range walker.Waits[instr.FirstWait:instr.EndWait] {
			walker.uses[wait.Instr]++
		}
		if earlier := walker.follows[i]; earlier != None && !walker.meets(index) {
			walker.uses[earlier]++
		}
	}
}

// meets reports whether a send or receive is one event with its other end.
func (check *check) meets(index int32) bool {
	instr := &check.Instrs[index]
	return check.follows[index] != None && (instr.Op == Send || instr.Op == Recv) && check.Channels[instr.Channel].Slots == 0
}

func (walker *walker) hasRun(index int32) bool {
	return walker.place[index] <= walker.cursor[walker.stream[index]]
}

// run runs a stream until it must wait.
func (walker *walker) run(stream int32) {
	if walker.asleep[stream] {
		return
	}
	end := walker.starts[stream+1] - walker.starts[stream]
	for walker.cursor[stream] < end {
		index := walker.events[walker.starts[stream]+walker.cursor[stream]]
		if obstacle := walker.obstacle(index); obstacle != None {
			walker.next[stream] = walker.sleepers[obstacle]
			walker.sleepers[obstacle] = stream + 1
			walker.asleep[stream] = true
			return
		}
		if !walker.meets(index) {
			walker.join(index)
			walker.clocks[stream][stream] = walker.place[index]
			walker.access.visit(index, walker.clocks[stream])
			walker.pass(index)
			continue
		}
		// Whichever end comes last runs both.
		other := walker.follows[index]
		there := walker.stream[other]
		if there == stream || walker.cursor[there] != walker.place[other]-1 || walker.obstacle(other) != None {
			return
		}
		walker.meet(index, other)
		walker.ready = append(walker.ready, there)
	}
}

// obstacle returns an instruction that has not run and that this one waits for, None if it can run.
func (walker *walker) obstacle(index int32) int32 {
	if earlier := walker.follows[index]; earlier != None && !walker.hasRun(earlier) && !walker.meets(index) {
		return earlier
	}
	instr := &walker.Instrs[index]
	for _, wait := range walker.Waits[instr.FirstWait:instr.EndWait] {
		if !walker.hasRun(wait.Instr) {
			return wait.Instr
		}
	}
	return None
}

// join adds what the instructions that this one waits for have seen to its stream's clock.
func (walker *walker) join(index int32) {
	clock := walker.clocks[walker.stream[index]]
	instr := &walker.Instrs[index]
	for _, wait := range walker.Waits[instr.FirstWait:instr.EndWait] {
		walker.see(clock, wait.Instr)
	}
	if earlier := walker.follows[index]; earlier != None && !walker.meets(index) {
		walker.see(clock, earlier)
	}
}

// see joins the clock of an instruction that has run, and frees the copy after its last use.
func (walker *walker) see(clock []int32, index int32) {
	copied := walker.clockOf[index] - 1
	if clock[walker.stream[index]] < walker.place[index] {
		for stream, seen := range walker.copies[copied] {
			clock[stream] = max(clock[stream], seen)
		}
	}
	walker.uses[index]--
	if walker.uses[index] == 0 {
		walker.unused = append(walker.unused, copied)
	}
}

// meet runs both ends of a message without slots as one event.
func (walker *walker) meet(index, other int32) {
	walker.join(index)
	walker.join(other)
	here, there := walker.stream[index], walker.stream[other]
	clock := walker.clocks[here]
	for stream, seen := range walker.clocks[there] {
		clock[stream] = max(clock[stream], seen)
	}
	clock[here], clock[there] = walker.place[index], walker.place[other]
	copy(walker.clocks[there], clock)
	if walker.Instrs[index].Op == Recv {
		index, other = other, index
	}
	walker.access.visit(index, clock)
	walker.access.visit(other, clock)
	walker.pass(index)
	walker.pass(other)
}

// pass marks an instruction as run, keeps its clock if others wait for it, and wakes those that
// already do.
func (walker *walker) pass(index int32) {
	stream := walker.stream[index]
	walker.cursor[stream]++
	if walker.uses[index] > 0 {
		if len(walker.unused) == 0 {
			walker.unused = append(walker.unused, int32(len(walker.copies)))
			walker.copies = append(walker.copies, make([]int32, len(walker.clocks)))
		}
		last := len(walker.unused) - 1
		copied := walker.unused[last]
		walker.unused = walker.unused[:last]
		copy(walker.copies[copied], walker.clocks[stream])
		walker.clockOf[index] = copied + 1
	}
	for sleeper := walker.sleepers[index]; sleeper != 0; sleeper = walker.next[sleeper-1] {
		walker.asleep[sleeper-1] = false
		walker.ready = append(walker.ready, sleeper-1)
	}
}
