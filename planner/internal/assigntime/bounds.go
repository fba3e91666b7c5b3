package assigntime

import (
	"math"
	"math/bits"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// lower returns bounds for any assignment, each the largest over a few waits. Once the time is up,
// it uses only the first waits.
func (search *localSearch) lower() []instance.BoundValue {
	out := []instance.BoundValue{
		{Name: "fastest devices", What: "each unit where it takes least"},
		{Name: "fewest devices", What: "likewise, with the cheapest crossings that the memory asks for"},
		{Name: "sets of devices", What: "each set that holds the model: its fastest devices up to their memory, its cheapest crossings, the update shared out"},
	}
	count, all := len(search.at), uint(1)<<min(len(search.units), bits.UintSize-1)-1
	if len(search.units) >= bits.UintSize {
		all = math.MaxUint
	}
	for _, waits := range []steptime.Waits{{}, {Host: true}, {Micro: 2 * count, Token: count, Host: true}, search.sums.WaitsOf(search.best)} {
		bound := search.floor(waits)
		fastest, update := bound.fastest(all), bound.update(all)
		out[0].Value = max(out[0].Value, bound.safe(fastest+update))
		if search.ctx.Err() != nil {
			out = out[:1]
		}
		if len(out) == 1 {
			continue
		}
		if search.memory == nil {
			search.memory = search.weigh()
			search.memory.first = search.reaches(search.ctx)
		}
		bound.headroom = search.memory
		bound.cuts = bound.cut()
		least := bound.fewest()
		out[1].Value = max(out[1].Value, bound.safe(fastest+update+bound.crossings(all, least)))
		out[2].Value = max(out[2].Value, bound.safe(bound.sets(search.ctx, all, least, search.bestScore.step)))
	}
	return out
}

func largestBound(bounds []instance.BoundValue) float64 {
	most := 0.
	for i := range bounds {
		most = max(most, bounds[i].Value)
	}
	return most
}
