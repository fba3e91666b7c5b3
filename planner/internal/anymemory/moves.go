package anymemory

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// move takes count items of kind give out of one device, and back of kind
// take in exchange; take is -1 where nothing comes back.
type move struct {
	from, to    *anywhere.Load
	give, take  int
	count, back int
}

func (change *move) apply(sign int) {
	change.from.Add(change.give, -sign*change.count)
	change.to.Add(change.give, sign*change.count)
	if change.take >= 0 {
		change.to.Add(change.take, -sign*change.back)
		change.from.Add(change.take, sign*change.back)
	}
}

// maxAtOnce is how many items of a kind a move takes at once, beside all of them.
const maxAtOnce = 4

// moves tries every move of items out of one device to another, and every
// exchange; visit says whether to go on.
func (state *search) moves(from, to *anywhere.Load, visit func(*move) bool) {
	for give, held := range from.Counts {
		if held == 0 || !to.Allows(give) {
			continue
		}
		for count := 1; count <= held; count = state.more(count, held) {
			if !visit(&move{from, to, give, -1, count, 0}) {
				return
			}
			for take, there := range to.Counts {
				if there == 0 || take == give || !from.Allows(take) {
					continue
				}
				for back := 1; back <= min(there, maxAtOnce); back++ {
					if count <= maxAtOnce && !visit(&move{from, to, give, take, count, back}) {
						return
					}
				}
			}
		}
	}
}

// more is the number to try after count: up to most, then all.
func (state *search) more(count, held int) int {
	if count < maxAtOnce {
		return count + 1
	}
	if count < held {
		return held
	}
	return held + 1
}

// descend takes from the fullest device whatever lowers the larger of the two
// shares most, until nothing does: each step makes the shares, sorted, smaller
// in lexicographic order.
func (state *search) descend() {
	for !state.stopped() {
		from := state.fullest()
		var best move
		least := from.Share()
		for _, to := range state.loads {
			if to == from || to.Share().Cmp(least) >= 0 || state.seenLike(to) {
				continue
			}
			state.moves(from, to, func(change *move) bool {
				change.apply(1)
				share := chain.MaxShare(from.Share(), to.Share())
				change.apply(-1)
				if share.Cmp(least) < 0 {
					least, best = share, *change
				}
				return !state.stopped() && (best.from == nil || !state.manyKinds())
			})
			if best.from != nil && state.manyKinds() {
				break
			}
		}
		if best.from == nil {
			break
		}
		best.apply(1)
	}
	state.keep()
}

// manyKinds reports that there are so many kinds that the first move that helps
// is taken, and not the best of all.
func (state *search) manyKinds() bool {
	const few = 100
	return len(state.problem.Kinds) > few
}

// seenLike reports that a device before is the same and idle too.
func (state *search) seenLike(load *anywhere.Load) bool {
	if load.Items > 0 {
		return false
	}
	for device := range load.Device {
		if state.loads[device].Items == 0 && state.problem.Devices[device].Like == state.problem.Devices[load.Device].Like {
			return true
		}
	}
	return false
}

// kick moves a few items of the fullest device, and of another, anywhere.
func (state *search) kick() {
	from := []*anywhere.Load{state.fullest(), state.loads[state.rng.IntN(len(state.loads))]}
	for range 2 + state.rng.IntN(3) {
		load, to := from[state.rng.IntN(2)], state.loads[state.rng.IntN(len(state.loads))]
		kind := state.rng.IntN(max(1, len(state.problem.Kinds)))
		if len(state.problem.Kinds) == 0 || load.Counts[kind] == 0 || !to.Allows(kind) {
			continue
		}
		load.Add(kind, -1)
		to.Add(kind, 1)
	}
}

func (state *search) fullest() *anywhere.Load {
	return slices.MaxFunc(state.loads, func(x, y *anywhere.Load) int { return x.Share().Cmp(y.Share()) })
}
