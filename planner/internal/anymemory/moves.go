package anymemory

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// move takes out of one device n of class give, and out of another m of class
// take in exchange; take is -1 where nothing comes back.
type move struct {
	from, to   *anywhere.Load
	give, take int
	n, m       int
}

func (v *move) apply(sign int) {
	v.from.Add(v.give, -sign*v.n)
	v.to.Add(v.give, sign*v.n)
	if v.take >= 0 {
		v.to.Add(v.take, -sign*v.m)
		v.from.Add(v.take, sign*v.m)
	}
}

// maxAtOnce is how many items of a class a move takes at once, beside all of them.
const maxAtOnce = 4

// moves tries every move of items out of one device to another, and every
// exchange; visit says whether to go on.
func (a *search) moves(from, to *anywhere.Load, visit func(*move) bool) {
	for give, held := range from.Counts {
		if held == 0 || !to.Allows(give) {
			continue
		}
		for n := 1; n <= held; n = a.more(n, held) {
			if !visit(&move{from, to, give, -1, n, 0}) {
				return
			}
			for take, there := range to.Counts {
				if there == 0 || take == give || !from.Allows(take) {
					continue
				}
				for m := 1; m <= min(there, maxAtOnce); m++ {
					if n <= maxAtOnce && !visit(&move{from, to, give, take, n, m}) {
						return
					}
				}
			}
		}
	}
}

// more is the number to try after n: up to most, then all.
func (a *search) more(n, held int) int {
	if n < maxAtOnce {
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
func (a *search) descend() {
	for !a.stopped() {
		from := a.fullest()
		var best move
		least := from.Share()
		for _, to := range a.loads {
			if to == from || to.Share().Cmp(least) >= 0 || a.seenLike(to) {
				continue
			}
			a.moves(from, to, func(v *move) bool {
				v.apply(1)
				s := chain.MaxShare(from.Share(), to.Share())
				v.apply(-1)
				if s.Cmp(least) < 0 {
					least, best = s, *v
				}
				return !a.stopped() && (best.from == nil || !a.manyKinds())
			})
			if best.from != nil && a.manyKinds() {
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

// manyKinds reports that there are so many classes that the first move that helps
// is taken, and not the best of all.
func (a *search) manyKinds() bool {
	const few = 100
	return len(a.problem.Kinds) > few
}

// seenLike reports that a device before is the same and idle too.
func (a *search) seenLike(l *anywhere.Load) bool {
	if l.Items > 0 {
		return false
	}
	for d := range l.Device {
		if a.loads[d].Items == 0 && a.problem.Devices[d].Like == a.problem.Devices[l.Device].Like {
			return true
		}
	}
	return false
}

// kick moves a few items of the fullest device, and of another, anywhere.
func (a *search) kick() {
	from := []*anywhere.Load{a.fullest(), a.loads[a.rng.IntN(len(a.loads))]}
	for range 2 + a.rng.IntN(3) {
		l, to := from[a.rng.IntN(2)], a.loads[a.rng.IntN(len(a.loads))]
		c := a.rng.IntN(max(1, len(a.problem.Kinds)))
		if len(a.problem.Kinds) == 0 || l.Counts[c] == 0 || !to.Allows(c) {
			continue
		}
		l.Add(c, -1)
		to.Add(c, 1)
	}
}

func (a *search) fullest() *anywhere.Load {
	return slices.MaxFunc(a.loads, func(x, y *anywhere.Load) int { return x.Share().Cmp(y.Share()) })
}
