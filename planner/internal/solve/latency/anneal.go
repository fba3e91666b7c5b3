package latency

import (
	"context"
	"math"
)

// anneal changes an assignment for so many trials, takes what is better and,
// ever more rarely, what is worse (Kirkpatrick, Gelatt and Vecchi, 1983), and
// keeps the best. Every other change is around a unit that the latency waits
// for: elsewhere nothing is gained at once. Of equal latencies that with the
// earlier ends is better.
func (search *search) anneal(ctx context.Context, start []int32, trials int, hot float64, found func([]int32, float64)) {
	search.load(start)
	value := search.eval.latency(search.slot)
	energy := value + search.tie()
	best := value
	scale := best
	var critical []int32
	critical = search.eval.critical(critical)
	for trial := range trials {
		if trial%32 == 0 && ctx.Err() != nil {
			return
		}
		temperature := scale * hot * math.Pow(1e-4, float64(trial)/float64(trials))
		unit := int32(search.random.IntN(len(search.slot)))
		if trial%2 == 0 && len(critical) > 0 {
			unit = critical[search.random.IntN(len(critical))]
		}
		search.undo = search.undo[:0]
		search.propose(unit)
		if len(search.undo) == 0 || !search.keepsRules() {
			search.takeBack()
			continue
		}
		next := search.eval.latency(search.slot)
		after := next + search.tie()
		if after > energy && !(search.random.ExpFloat64()*temperature > after-energy) {
			search.takeBack()
			continue
		}
		if after != energy {
			critical = search.eval.critical(critical[:0])
		}
		value, energy = next, after
		if value < best {
			best = value
			found(search.slot, value)
		}
	}
}

// tie is what tells equal latencies apart, too little to outweigh any.
func (search *search) tie() float64 {
	const weight = 1e-4
	if search.slots == 0 {
		return 0
	}
	return weight * search.eval.ends / float64(search.slots)
}
