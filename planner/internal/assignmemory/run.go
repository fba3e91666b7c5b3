package assignmemory

// kicks is the number of disturbances of a local optimum before the exact search.
const kicks = 30

// run searches until the value meets the bound, every smaller share is infeasible, or the context
// ends.
func (state *search) run() {
	if state.loads == nil {
		return
	}
	if state.best == nil {
		state.greedy()
	}
	state.descend()
	state.shake(kicks)
	state.even()
	state.prove()
	state.even()
}

// shake disturbs the best map times times, and descends again after each.
func (state *search) shake(times int) {
	for range times {
		if state.closed() || state.stopped() {
			return
		}
		state.load(state.best)
		state.kick()
		state.descend()
	}
}
