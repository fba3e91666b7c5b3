package stages

import (
	"context"
	"math"
)

// ask is the probe that fits the question.
func (within *search) ask(ctx context.Context, limit float64, stages int) *probe {
	switch {
	case math.IsInf(limit, 1):
		return within.pack(ctx, limit, stages, func(stage, node int) float64 { return within.view(stage).Nodes[node].Least() })
	case !within.network.transfers && math.IsInf(within.capacity, 1):
		return within.pack(ctx, limit, stages, func(_, node int) float64 { time, _ := within.view(1).Nodes[node].Fastest(); return time })
	default:
		return within.probe(ctx, limit, stages)
	}
}

// pack answers as probe does where one amount counts and adds up: time alone,
// or memory alone at no limit on time. Nodes are taken away one by one, each
// into the stage that is open or into a new one, so that one figure a set is
// enough: the fewest stages and, among those, the least amount in the open
// one. More of neither helps whatever comes before, since the open stage may
// always be closed.
func (within *search) pack(ctx context.Context, limit float64, stages int, amount func(stage, node int) float64) *probe {
	attempt := within.question(limit, stages)
	most, next := limit, &attempt.next
	if math.IsInf(limit, 1) {
		most, next = within.capacity, &attempt.nextMemory
	}
	most *= 1 + rounding
	open := make([]float64, within.sets.Len())
	for i, below := range within.sets.Below {
		if i%1024 == 0 && ctx.Err() != nil {
			attempt.stopped = true
			return attempt
		}
		if i > 0 && attempt.level[i] == 0 {
			continue
		}
		for _, b := range below {
			level, begin := max(1, attempt.level[i]), attempt.after[i]
			sum := open[i] + amount(int(level), int(b.Node))
			if sum > most { // the next stage begins here
				*next = min(*next, sum)
				level, begin, sum = level+1, int32(i), amount(int(level)+1, int(b.Node))
			}
			if sum > most {
				*next = min(*next, sum)
				continue
			}
			known := attempt.level[b.To]
			if int(level) <= stages && (known == 0 || level < known || level == known && sum < open[b.To]) {
				attempt.level[b.To], attempt.after[b.To], open[b.To] = level, begin, sum
			}
		}
	}
	return attempt
}
