package stagesearch

import (
	"context"
	"slices"
)

// improve goes on from the placement at hand to what is better near it, and from there
// to what is better between it and earlier ones. The next round does not go on from
// that: all would soon be the same.
func (search *Search) improve(ctx context.Context, work int) {
	search.descend(ctx, work)
	own := slices.Clone(search.place)
	if slices.Max(search.load) <= search.bestLoad*(1+joinable) && search.join(ctx) {
		search.descend(ctx, work/2)
	}
	copy(search.place, own)
	search.refresh()
	search.keep()
}

// joinable is how far a placement may be above the best to be joined with others.
const joinable = 0.05

// descend looks for what is better in corridors around the placement at hand and by
// dividing pairs of stages anew, in turn.
func (search *Search) descend(ctx context.Context, work int) {
	const turns = 8
	search.tighten(ctx, work)
	for turn := 0; turn < turns && search.divide(ctx); turn++ {
		search.tighten(ctx, work/4)
	}
}

// divide divides pairs of stages anew; false where none is better so.
func (search *Search) divide(ctx context.Context) (better bool) {
	if search.items > manyItems {
		return false // a thin order takes too long to find
	}
	if search.part == nil {
		if search.part = newParter(ctx, search.annealer); search.part == nil {
			return false
		}
	}
	better = search.part.all(ctx)
	search.refresh()
	return better
}
