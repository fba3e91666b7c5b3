package program

import (
	"fmt"
	"strings"
)

// edge is the reason why an event happens after another one.
type edge struct {
	from   int32 // the earlier instruction
	reason string
}

// cycleEffort is the most events that the search for the smallest cycle visits.
const cycleEffort = 1 << 24

// cycleSearch looks for cycles of events. An event is an instruction. A send and a receive without
// slots are one event, with the number of the send.
type cycleSearch struct {
	*check
	alive  []bool  // by event: it may lie on a cycle
	later  []int32 // by event: how many alive ones directly follow it
	effort int
	best   []edge

	seen    []int32 // by event: the last search that reached it, from 1
	round   int32
	behind  []edge  // by event: the event from which the search reached it, and why that is after it
	covered []int32 // by stream: places up to here are visited
	queue   []int32
}

// cycle reports V6: the smallest cycle of instructions that wait for one another. A run along a
// stream counts as one edge, however long.
//
// All cycles are among the instructions that the walk has not run, without those that none of these
// waits for. A breadth-first search from each of them finds the smallest cycle through it. Later
// searches leave it out, and no search goes deeper than the best so far. The first begins on a
// cycle, so that there is an answer if the effort ends early.
func (search *cycleSearch) cycle() {
	first := search.onCycle()
	search.through(first)
	for index := range search.Instrs {
		if search.effort <= 0 {
			break
		}
		search.through(int32(index))
	}
	best := search.best
	text := make([]string, len(best))
	for i, edge := range best {
		text[i] = fmt.Sprintf("%s before %s (%s)", search.name(edge.from), search.name(best[(i+1)%len(best)].from), edge.reason)
	}
	search.faultAt("V6", best[0].from, "deadlock, a circle of %d: %s; want one of these gone: another order in a stream, a wait less, a slot more",
		len(best), strings.Join(text, ", "))
}

func newCycleSearch(check *check) *cycleSearch {
	count := len(check.Instrs)
	search := &cycleSearch{
		check: check, effort: cycleEffort, alive: make([]bool, count), later: make([]int32, count),
		seen: make([]int32, count), behind: make([]edge, count), covered: make([]int32, len(check.starts)-1),
	}
	for index := range check.Instrs {
		search.alive[index] = search.event(int32(index)) == int32(index) && search.left(int32(index))
	}
	search.trim()
	return search
}

// left reports whether the walk has not run an instruction.
func (search *cycleSearch) left(index int32) bool {
	return search.place[index] > search.cursor[search.stream[index]]
}

// event returns the instruction whose number an instruction's event has.
func (search *cycleSearch) event(index int32) int32 {
	if search.Instrs[index].Op == Recv && search.meets(index) {
		return search.follows[index]
	}
	return index
}

// members returns the instructions of an event.
func (search *cycleSearch) members(event int32) []int32 {
	if search.meets(event) {
		return []int32{event, search.follows[event]}
	}
	return []int32{event}
}

// name is an event in the text of a fault.
func (search *cycleSearch) name(event int32) string {
	if search.meets(event) {
		return search.brief(event) + " and " + search.brief(search.follows[event])
	}
	return search.brief(event)
}

// crossings adds the events that must happen before an instruction because it waits for them, or
// for their message or slot.
func (search *cycleSearch) crossings(index int32, found []edge) []edge {
	instr := &search.Instrs[index]
	for _, wait := range search.Waits[instr.FirstWait:instr.EndWait] {
		if search.left(wait.Instr) {
			found = append(found, edge{search.event(wait.Instr), "a wait"})
		}
	}
	if earlier := search.follows[index]; earlier != None && search.left(earlier) && !search.meets(index) {
		reason := "its message"
		if instr.Op == Send {
			reason = "its slot"
		}
		found = append(found, edge{search.event(earlier), reason})
	}
	return found
}

// directly returns all events directly before one: crossings, and those before it on its streams.
func (search *cycleSearch) directly(event int32) []edge {
	var found []edge
	for _, index := range search.members(event) {
		found = search.crossings(index, found)
		if place, stream := search.place[index], search.stream[index]; place-1 > search.cursor[stream] {
			found = append(found, edge{from: search.event(search.events[search.starts[stream]+place-2])})
		}
	}
	return found
}

// trim removes the events that no remaining one waits for, until there are none.
func (search *cycleSearch) trim() {
	var done []int32
	for event, alive := range search.alive {
		if alive {
			for _, edge := range search.directly(int32(event)) {
				search.later[edge.from]++
			}
		}
	}
	for event, alive := range search.alive {
		if alive && search.later[event] == 0 {
			done = append(done, int32(event))
		}
	}
	for len(done) > 0 {
		event := done[len(done)-1]
		done = done[:len(done)-1]
		search.alive[event] = false
		for _, edge := range search.directly(event) {
			search.later[edge.from]--
			if search.later[edge.from] == 0 {
				done = append(done, edge.from)
			}
		}
	}
}

// onCycle returns an event on a cycle: the way back from any event leads to one.
func (search *cycleSearch) onCycle() int32 {
	event := int32(0)
	for !search.alive[event] {
		event++
	}
	search.round++
	for search.seen[event] != search.round {
		search.seen[event] = search.round
		event = search.directly(event)[0].from
	}
	return event
}

// through finds the smallest cycle through an event, if it is smaller than the best so far, and
// then leaves the event out.
func (search *cycleSearch) through(start int32) {
	if !search.alive[start] || len(search.best) == 1 {
		return
	}
	search.round++
	clear(search.covered)
	search.queue = append(search.queue[:0], start)
	depth, last := 1, start                           // of the edges that are followed now; the last event at this depth
	for next := 0; next < len(search.queue); next++ { //nolint:intrange // the queue grows
		event := search.queue[next]
		if len(search.best) > 0 && depth >= len(search.best) || search.back(event, start, depth) {
			break
		}
		if event == last {
			depth, last = depth+1, search.queue[len(search.queue)-1]
		}
	}
	search.alive[start] = false
}

// back visits the events before one: over crossings, and over any stretch of its streams. It
// reports whether start is among them, which closes the cycle.
func (search *cycleSearch) back(event, start int32, depth int) bool {
	for _, index := range search.members(event) {
		for _, crossing := range search.crossings(index, nil) {
			if search.come(crossing.from, edge{event, crossing.reason}, start, depth) {
				return true
			}
		}
		stream := search.stream[index]
		begin := search.starts[stream]
		from := max(search.cursor[stream], search.covered[stream])
		for place := from; place < search.place[index]-1; place++ {
			device := &search.Devices[search.Instrs[index].Device]
			reason := edge{event, "stream " + device.Streams[search.Instrs[index].Stream]}
			if search.come(search.event(search.events[begin+place]), reason, start, depth) {
				return true
			}
		}
		search.covered[stream] = max(search.covered[stream], search.place[index]-1)
	}
	return false
}

// come records an event and the one after it. It reports whether the event is start.
func (search *cycleSearch) come(event int32, behind edge, start int32, depth int) bool {
	search.effort--
	if event == start {
		search.close(start, behind, depth)
		return true
	}
	if search.alive[event] && search.seen[event] != search.round {
		search.seen[event] = search.round
		search.behind[event] = behind
		search.queue = append(search.queue, event)
	}
	return false
}

// close keeps the cycle: from start over the events after it, back to start.
func (search *cycleSearch) close(start int32, behind edge, depth int) {
	search.best = make([]edge, 0, depth)
	from := start
	for {
		search.best = append(search.best, edge{from, behind.reason})
		from = behind.from
		if from == start {
			return
		}
		behind = search.behind[from]
	}
}
