package anymemory

// kicks is how often a local optimum is disturbed before the exact search.
const kicks = 30

// run searches until the bound is met, every smaller share is refuted, or the
// context ends.
func (a *search) run() {
	if a.loads == nil {
		return
	}
	if a.best == nil {
		a.greedy()
	}
	if a.manyKinds() {
		a.additive()
	}
	a.descend()
	a.shake(kicks)
	a.even()
	a.prove()
	a.even()
}

// shake disturbs the best map so often and descends again from each.
func (a *search) shake(times int) {
	for range times {
		if a.closed() || a.stopped() {
			return
		}
		a.load(a.best)
		a.kick()
		a.descend()
	}
}
