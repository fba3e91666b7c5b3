package scheduletime

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Least returns the smallest budget found with which a choice fits, if all GPUs have the same. The
// choice runs one micro-batch at a time, or the question's own order. It recomputes all blocks or none.
func Least(ctx context.Context, question *Question) (int64, error) {
	search := newSearch(ctx, question)
	choice, err := search.least()
	if choice == nil {
		return 0, err
	}
	return slices.Max(choice.used), nil
}

// least returns the choice of this budget; nil: none, with the last error.
func (search *search) least() (best *Choice, failed error) {
	kinds := search.Kinds
	if search.Own {
		kinds = []costmodel.ScheduleKind{search.plain(form{})}
	}
	failed = ErrNone
	for _, kind := range kinds {
		for _, all := range []bool{true, false} {
			again := slices.Repeat([]bool{all}, len(search.Blocks))
			table, err := search.Table(kind, again)
			if err != nil {
				failed = err
				continue
			}
			cuts := search.cutsOf(kind, search.Fullest(table))
			if cuts == nil {
				continue
			}
			choice, err := search.evaluate(kind, cuts, again)
			if err != nil {
				failed = err
			} else if best == nil || slices.Max(choice.used) < slices.Max(best.used) {
				best = choice
			}
			if len(search.Blocks) == 0 {
				break
			}
		}
	}
	return best, failed
}
