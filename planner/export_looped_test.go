package planner

import "context"

// LoopedBounds are the two bounds on the largest share of an interleaved
// pipeline, and what the search for cuts finds where they are too many to try
// all.
func (p *Problem) LoopedBounds(ctx context.Context) (weights, run, found float64, err error) {
	l, _, err := p.layout()
	if err != nil {
		return 0, 0, 0, err
	}
	s := l.newLooped()
	best, _ := s.climb(ctx)
	return l.weightBound(), s.floor, best.most, nil
}
