package assignmemory

import (
	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// descend makes the move from the fullest device that lowers the larger of the two shares most,
// until no move does. Each move lowers the sorted shares in lexicographic order.
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

// kick moves a few items of the fullest device, and of another, to random devices.
func (state *search) kick() {
	from := []*assignment.Load{state.fullest(), state.loads[state.rng.IntN(len(state.loads))]}
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
