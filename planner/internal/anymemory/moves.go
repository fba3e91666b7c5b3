package anymemory

import (
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// move takes out of one device n of class give, and out of another m of class
// take in exchange; take is -1 where nothing comes back.
type move struct {
	from, to   *load
	give, take int
	n, m       int
}

func (v *move) apply(sign int) {
	v.from.add(v.give, -sign*v.n)
	v.to.add(v.give, sign*v.n)
	if v.take >= 0 {
		v.to.add(v.take, -sign*v.m)
		v.from.add(v.take, sign*v.m)
	}
}

// most is how many items of a class a move takes at once, beside all of them.
const most = 4

// moves tries every move of items out of one device to another, and every
// exchange; visit says whether to go on.
func (a *anySearch) moves(from, to *load, visit func(*move) bool) {
	for give, held := range from.counts {
		if held == 0 || !to.allows(give) {
			continue
		}
		for n := 1; n <= held; n = a.more(n, held) {
			if !visit(&move{from, to, give, -1, n, 0}) {
				return
			}
			for take, there := range to.counts {
				if there == 0 || take == give || !from.allows(take) {
					continue
				}
				for m := 1; m <= min(there, most); m++ {
					if n <= most && !visit(&move{from, to, give, take, n, m}) {
						return
					}
				}
			}
		}
	}
}

// more is the number to try after n: up to most, then all.
func (a *anySearch) more(n, held int) int {
	if n < most {
		return n + 1
	}
	if n < held {
		return held
	}
	return held + 1
}

// descend takes from the fullest device whatever lowers the larger of the two
// shares most, until nothing does: each step makes the shares, sorted, smaller
// in lexicographic order.
func (a *anySearch) descend() {
	for !a.stopped() {
		from := a.fullest()
		var best move
		least := from.share()
		for _, to := range a.loads {
			if to == from || to.share().Cmp(least) >= 0 || a.seenLike(to) {
				continue
			}
			a.moves(from, to, func(v *move) bool {
				v.apply(1)
				s := larger(from.share(), to.share())
				v.apply(-1)
				if s.Cmp(least) < 0 {
					least, best = s, *v
				}
				return !a.stopped() && (best.from == nil || !a.many())
			})
			if best.from != nil && a.many() {
				break
			}
		}
		if best.from == nil {
			break
		}
		best.apply(1)
	}
	a.keep()
}

// many reports that there are so many classes that the first move that helps
// is taken, and not the best of all.
func (a *anySearch) many() bool {
	const few = 100
	return len(a.sc.classes) > few
}

// seenLike reports that a device before is the same and idle too.
func (a *anySearch) seenLike(l *load) bool {
	if l.items > 0 {
		return false
	}
	for d := range l.device {
		if a.loads[d].items == 0 && a.sc.Bins[d].Like == a.sc.Bins[l.device].Like {
			return true
		}
	}
	return false
}

func larger(s, t chain.Share) chain.Share {
	if s.Cmp(t) < 0 {
		return t
	}
	return s
}
