package anytime

import (
	"math"
	"math/bits"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// lower are the bounds that hold for any assignment, each the largest over a
// few waits; once the time is up, the first alone.
func (w *walk) lower() []instance.BoundValue {
	out := []instance.BoundValue{
		{Name: "fastest devices", What: "each unit where it takes least"},
		{Name: "fewest devices", What: "likewise, with the cheapest crossings that the memory asks for"},
		{Name: "sets of devices", What: "each set that holds the model: its fastest devices up to their memory, its cheapest crossings, the update shared out"},
	}
	n, all := len(w.at), uint(1)<<min(len(w.units), bits.UintSize-1)-1
	if len(w.units) >= bits.UintSize {
		all = math.MaxUint
	}
	for _, waits := range []steptime.Waits{{}, {Host: true}, {Micro: 2 * n, Token: n, Host: true}, w.sums.WaitsOf(w.best)} {
		f := w.floor(waits)
		fastest, update := f.fastest(all), f.update(all)
		out[0].Value = max(out[0].Value, f.safe(fastest+update))
		if w.ctx.Err() != nil {
			out = out[:1]
		}
		if len(out) == 1 {
			continue
		}
		if w.memory == nil {
			w.memory = w.weigh()
			w.memory.first = w.reaches(w.ctx)
		}
		f.headroom = w.memory
		f.cuts = f.cut()
		least := f.fewest()
		out[1].Value = max(out[1].Value, f.safe(fastest+update+f.crossings(all, least)))
		out[2].Value = max(out[2].Value, f.safe(f.sets(w.ctx, all, least, w.bestScore.step)))
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
