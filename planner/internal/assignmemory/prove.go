package assignmemory

import (
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// firstNodes is the number of nodes for the first attempts to prove a share infeasible. Each round
// has ten times as many.
const firstNodes = 20_000

// prove looks for a better map by branch and bound until there is none. If that takes long, it
// looks for maps halfway to the bound: a proof that none exists is faster, and raises the bound.
func (state *search) prove() {
	nodes := firstNodes
	for round := 1; !state.closed() && !state.stopped() && (state.rounds == 0 || round <= state.rounds); round++ {
		if state.ask(state.value, nodes) == found {
			round--
			continue
		}
		nodes *= 10
		if round == 1 && !state.closed() {
			state.relax(false)
			if !state.closed() {
				state.relax(true)
			}
		}
		state.shake(kicks * nodes / firstNodes)
		for part := 0.5; part > 0.1 && !state.closed() && !state.stopped(); part /= 2 {
			low := state.lower()
			target := low + (state.value.Float()-low)*(1-part)
			const one = 1 << 40
			if state.ask(chain.Share{Peak: int64(target * one), Budget: one}, nodes) == found {
				break
			}
		}
	}
}

// verdict is the outcome of a search for a smaller share.
type verdict int

const (
	gaveUp verdict = iota
	found
	infeasible
)

// ask looks for a map whose shares are all smaller than value.
func (state *search) ask(value chain.Share, nodes int) verdict {
	state.targets++
	pack := newPacking(state, value, nodes)
	if at := pack.unfit(0); at >= 0 && value.Cmp(state.value) <= 0 { // the average bound alone proves infeasibility
		state.average, state.at = max(state.average, value.Float()), state.moments[at].Name
		return infeasible
	}
	switch {
	case pack.search(0):
		state.load(pack.counts())
		state.keep()
		state.descend()
		return found
	case pack.gaveUp:
		return gaveUp
	case value.Cmp(state.value) >= 0:
		state.proved = true
	default:
		state.infeasible = max(state.infeasible, value.Float()*(1-instance.Tolerance))
	}
	return infeasible
}

// relax solves a relaxed problem for its bound. It takes at most half of the remaining time: if the
// bound does not help, the local search needs the rest.
func (state *search) relax(coarse bool) {
	problem := state.problem.Relaxed(coarse)
	if problem == nil {
		return
	}
	ctx, cancel := instance.HalfOf(state.ctx)
	defer cancel()
	relaxed := newSearch(ctx, problem, instance.Limits{})
	relaxed.rounds = 2
	relaxed.run()
	state.relaxed = max(state.relaxed, relaxed.lower())
	if relaxed.proved {
		state.relaxed = max(state.relaxed, relaxed.value.Float())
	}
}
