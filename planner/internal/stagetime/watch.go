package stagetime

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// manyStretches is the number of stretches from which tables take so long that balanced cuts come
// first.
const manyStretches = 1 << 22

// stretchWatch checks the context once in some thousand stretches.
type stretchWatch struct {
	ctx   context.Context
	count int
	ended bool
}

// over counts stretches, and reports that the context has ended.
func (watch *stretchWatch) over(more int) bool {
	const often = 1 << 16
	if watch.count += more; watch.count >= often {
		watch.count = 0
		watch.ended = watch.ended || watch.ctx.Err() != nil
	}
	return watch.ended
}

// stretches returns the number of stretches in a search of all orders.
func (pipeline *pipes) stretches(stages int) int {
	items := pipeline.orders[0].peaks.Count()
	return len(pipeline.orders) * stages * items * items
}

// first returns the answer of balanced cuts; nil if there is none. It remains if the search is
// stopped before it finds a shorter step.
func (pipeline *pipes) first(ctx context.Context, caps []int64) *instance.Answer {
	answer, err := pipeline.balanced(ctx, caps)
	if err != nil {
		return nil
	}
	answer.Notes = pipeline.notes
	return answer
}

// instead returns the first answer in place of a stopped search, with the search's bound.
func instead(first, search *instance.Answer) *instance.Answer {
	first.Tried += search.Tried
	first.Stopped = search.Stopped
	if search.LowerBound > first.LowerBound {
		first.LowerBound, first.Bound = search.LowerBound, "busiest stage"
	}
	return first
}
