package scheduletime

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Least returns the smallest budget found with which a choice fits, if all GPUs have the same. The
// choice recomputes all blocks. It runs one micro-batch at a time, or the question's own order.
func Least(ctx context.Context, question *Question) (int64, error) {
	search := newSearch(ctx, question)
	choice, err := search.least()
	if err != nil {
		return 0, err
	}
	return slices.Max(choice.used), nil
}

// least returns the choice of this budget.
func (search *search) least() (best *Choice, failed error) {
	again := slices.Repeat([]bool{true}, len(search.Blocks))
	failed = ErrNone
	for _, kind := range search.Kinds {
		table, err := search.Table(kind, again)
		if err != nil {
			failed = err
			continue
		}
		if search.Own {
			if kind.Chunked() || kind.Split() {
				continue
			}
			kind = search.plain(form{})
		}
		choice, err := search.level(kind, search.even(kind, table), again)
		if err != nil {
			failed = err
			continue
		}
		if best == nil || slices.Max(choice.used) < slices.Max(best.used) {
			best, failed = choice, nil
		}
		if search.Own {
			break
		}
	}
	return best, failed
}

// level moves cuts as long as the fullest GPU needs less.
func (search *search) level(kind costmodel.ScheduleKind, cuts []int, again []bool) (*Choice, error) {
	best, err := search.evaluate(kind, cuts, again)
	for moved := err == nil; moved; {
		moved = false
		for cut := 1; cut < len(best.cuts)-1; cut++ {
			for _, by := range []int{-1, 1} {
				cuts := slices.Clone(best.cuts)
				if cuts[cut] += by; cuts[cut] <= cuts[cut-1] || cuts[cut] >= cuts[cut+1] {
					continue
				}
				if next, err := search.evaluate(kind, cuts, again); err == nil && slices.Max(next.used) < slices.Max(best.used) {
					best, moved = next, true
				}
			}
		}
	}
	return best, err
}
