package stagetime

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// manyStretches is from how many stretches on the tables take so long that
// cuts are found before they are made.
const manyStretches = 1 << 22

// stretchWatch looks at the context once in some thousand stretches.
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

// stretches is how many a search of all orders looks at.
func (pipeline *pipes) stretches(stages int) int {
	items := pipeline.orders[0].peaks.Count()
	return len(pipeline.orders) * stages * items * items
}

// first is the answer of balanced cuts, which remains if the search is stopped
// before it finds a shorter step; nil if they find none.
func (pipeline *pipes) first(ctx context.Context, caps []int64) *instance.Answer {
	answer, err := pipeline.balanced(ctx, caps)
	if err != nil {
		return nil
	}
	answer.Notes = pipeline.notes
	return answer
}

// instead is the first answer in place of a search that was stopped, with what
// the search proved.
func instead(first, search *instance.Answer) *instance.Answer {
	first.Tried += search.Tried
	first.Stopped = search.Stopped
	if search.LowerBound > first.LowerBound {
		first.LowerBound, first.Bound = search.LowerBound, "busiest stage"
	}
	return first
}
