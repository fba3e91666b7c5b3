package anymemory

import (
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// firstNodes is the budget of the first attempts to refute a share; each
// round has ten times as much.
const firstNodes = 20_000

// prove asks for a map below the best, by branch and bound, until there is
// none, and where that takes long, for maps halfway down to the bound, which
// are refuted sooner and raise it.
func (a *search) prove() {
	nodes := firstNodes
	for round := 1; !a.closed() && !a.stopped() && (a.rounds == 0 || round <= a.rounds); round++ {
		if a.ask(a.value, nodes) == found {
			round--
			continue
		}
		nodes *= 10
		if round == 1 && !a.closed() {
			a.additive()
		}
		if round == 1 && !a.closed() {
			a.relax()
		}
		a.shake(kicks * nodes / firstNodes)
		for part := 0.5; part > 0.1 && !a.closed() && !a.stopped(); part /= 2 {
			low := a.lower()
			t := low + (a.value.Float()-low)*(1-part)
			const one = 1 << 40
			if a.ask(chain.Share{Peak: int64(t * one), Budget: one}, nodes) == found {
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
	refuted
)

// ask looks for a map whose shares are all smaller than v.
func (a *search) ask(v chain.Share, nodes int) verdict {
	a.targets++
	q := newPacking(a, v, nodes)
	if at := q.unfit(0); at >= 0 && v.Cmp(a.value) <= 0 { // the average alone refutes it
		a.average, a.at = max(a.average, v.Float()), a.moments[at].Name
		return refuted
	}
	switch {
	case q.search(0):
		a.load(q.counts())
		a.keep()
		a.descend()
		return found
	case q.gaveUp:
		return gaveUp
	case v.Cmp(a.value) >= 0:
		a.proved = true
	default:
		a.refuted = max(a.refuted, v.Float()*(1-instance.Tolerance))
	}
	return refuted
}

// relax solves the relaxed problem for its bound.
func (a *search) relax() {
	r := a.problem.Relaxed()
	if r == nil {
		return
	}
	b := newSearch(a.ctx, r, instance.Limits{})
	b.rounds = 2
	b.run()
	a.relaxed = b.lower()
	if b.proved {
		a.relaxed = max(a.relaxed, b.value.Float())
	}
}
