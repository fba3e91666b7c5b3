package assignmemory

import (
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// firstNodes is the budget of the first attempts to prove a share infeasible;
// each round has ten times as much.
const firstNodes = 20_000

// prove asks for a map below the best, by branch and bound, until there is
// none. If that takes long, it asks for maps halfway down to the bound: a proof
// that there is none takes less time, and raises the bound.
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

// verdict is the outcome of a question for a smaller share.
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
	if at := pack.unfit(0); at >= 0 && value.Cmp(state.value) <= 0 { // the average alone proves it infeasible
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

// relax solves a relaxed problem for its bound. It may take half of the time
// that is left: the local search needs the rest where the bound does not help.
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
