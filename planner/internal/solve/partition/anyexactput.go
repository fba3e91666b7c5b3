package partition

// put adds v to device d: a wire that has members elsewhere costs d with its
// first member there, and costs the other device if that had all of them.
func (e *exact) put(v int32, d int) {
	devices := len(e.load)
	for _, w := range e.at[v] {
		held := e.held[int(w)*devices : int(w+1)*devices]
		if held[d] == 0 && e.placed[w] > 0 {
			e.charge(d, e.wires[w].cost)
			for o, n := range held {
				if n == e.placed[w] {
					e.charge(o, e.wires[w].cost)
				}
			}
		}
		held[d]++
		e.placed[w]++
	}
	e.load[d] += e.time[e.kind[d]][v]
	e.bytes[d] += e.size[v]
	e.items[d]++
	e.place[v] = int32(d)
}

func (e *exact) charge(d int, cost float64) {
	if !e.free[e.kind[d]] {
		e.load[d] += cost
	}
}

// takeBack undoes put, but for the loads.
func (e *exact) takeBack(v int32, d int) {
	for _, w := range e.at[v] {
		e.held[int(w)*len(e.load)+d]--
		e.placed[w]--
	}
	e.bytes[d] -= e.size[v]
	e.items[d]--
}
