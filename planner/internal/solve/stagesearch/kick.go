package stagesearch

import (
	"context"
	"slices"
)

// The kicks: steps for each item of one, in a run that cools down after a shake of a
// part of as many at one temperature, and how much worse what is gone on from may be.
const (
	kickSteps = 60
	shakePart = 6
	settling  = 0.01 // the most heat after the shake
	worse     = 0.002
)

// kick shakes the best placement a little, lets it settle and looks for what is better
// near by; it goes on from there if that is nearly as good (iterated local search). As
// corridors and pairs go far downhill, a short run of annealing before them is enough,
// and there are many.
func (search *Search) kick(ctx context.Context, steps int, way way) {
	from, load := slices.Clone(search.best), search.bestLoad
	each := kickSteps * search.items
	for done := 0; done < steps && ctx.Err() == nil; done += each {
		copy(search.place, from)
		search.unit, search.squarings = load*aim, way.power
		search.refresh()
		for range each / shakePart {
			search.step(way.hot * float64(int(1)<<way.power))
		}
		search.run(ctx, each, way.power, min(way.hot, settling), cold)
		search.tighten(ctx, corridorWork*each/2)
		if search.divide(ctx) {
			search.tighten(ctx, corridorWork*each/2)
		}
		if largest, fits := search.largest(); fits && largest <= load*(1+worse*search.fraction()) {
			load = largest
			copy(from, search.place)
		}
	}
}
