package scheduletime

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// Least returns the smallest budget found with which a choice fits, if all GPUs have the same. The
// choice recomputes all blocks. It runs one micro-batch at a time, or the question's own order.
func Least(ctx context.Context, question *Question) (int64, error) {
	search := &search{Question: question, ctx: ctx}
	choice, err := search.least()
	if err != nil {
		return 0, err
	}
	return choice.needs(), nil
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
			var row []order.Action // one micro-batch after the other
			for batch := range max(1, table.Workload.MicroBatches) {
				row = append(row, order.Action{Kind: order.Forward, MicroBatch: batch}, order.Action{Kind: order.Backward, MicroBatch: batch})
			}
			kind = order.Given(false, slices.Repeat([][]order.Action{row}, len(search.Topology.Devices)))
		}
		choice, err := search.level(kind, search.even(kind, table), again)
		if err != nil {
			failed = err
			continue
		}
		if best == nil || choice.needs() < best.needs() {
			best, failed = choice, nil
		}
		if search.Own {
			break
		}
	}
	return best, failed
}

// needs returns the most bytes that a GPU of a choice needs.
func (choice *Choice) needs() (most int64) {
	for i := range choice.Devices {
		most = max(most, choice.Devices[i].Budget-choice.Devices[i].HeadroomBytes)
	}
	return most
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
				if next, err := search.evaluate(kind, cuts, again); err == nil && next.needs() < best.needs() {
					best, moved = next, true
				}
			}
		}
	}
	return best, err
}
