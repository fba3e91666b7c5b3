package program

// through finds the smallest circle through an event, where it is smaller than
// the best so far, and then leaves the event out.
func (search *cycleSearch) through(start int32) {
	if !search.alive[start] || len(search.best) == 1 {
		return
	}
	search.round++
	clear(search.covered)
	search.queue = append(search.queue[:0], start)
	depth, last := 1, start // of the edges that are followed now; the last event at this depth
	for next := 0; next < len(search.queue); next++ {
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

// back comes to the events before one: over crossings, and over any stretch of
// its streams. It reports whether start is among them, which closes the circle.
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

// come notes an event that stands before the one behind it.
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

// close keeps the circle from start over the events behind it back to start.
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
