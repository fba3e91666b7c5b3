package stages

import (
	"context"
	"math"
)

// ask is the probe that fits the question.
func (s *search) ask(ctx context.Context, limit float64, stages int) *probe {
	switch {
	case math.IsInf(limit, 1):
		return s.pack(ctx, limit, stages, func(y, v int) float64 { return s.view(y).nodes[v].least() })
	case !s.w.transfers && math.IsInf(s.capacity, 1):
		return s.pack(ctx, limit, stages, func(_, v int) float64 { t, _ := s.view(1).nodes[v].fastest(); return t })
	default:
		return s.probe(ctx, limit, stages)
	}
}

// pack answers as probe does where one amount counts and adds up: time alone,
// or memory alone at no limit on time. Nodes are taken away one by one, each
// into the stage that is open or into a new one, so that one figure a set is
// enough: the fewest stages and, among those, the least amount in the open
// one. More of neither helps whatever comes before, since the open stage may
// always be closed.
func (s *search) pack(ctx context.Context, limit float64, stages int, amount func(y, node int) float64) *probe {
	q := s.question(limit, stages)
	most, next := limit, &q.next
	if math.IsInf(limit, 1) {
		most, next = s.capacity, &q.nextMemory
	}
	most *= 1 + rounding
	open := make([]float64, s.f.len())
	for i, below := range s.f.below {
		if i%1024 == 0 && ctx.Err() != nil {
			q.stopped = true
			return q
		}
		if i > 0 && q.level[i] == 0 {
			continue
		}
		for _, b := range below {
			level, begin := max(1, q.level[i]), q.after[i]
			sum := open[i] + amount(int(level), int(b.node))
			if sum > most { // the next stage begins here
				*next = min(*next, sum)
				level, begin, sum = level+1, int32(i), amount(int(level)+1, int(b.node))
			}
			if sum > most {
				*next = min(*next, sum)
				continue
			}
			known := q.level[b.to]
			if int(level) <= stages && (known == 0 || level < known || level == known && sum < open[b.to]) {
				q.level[b.to], q.after[b.to], open[b.to] = level, begin, sum
			}
		}
	}
	return q
}
