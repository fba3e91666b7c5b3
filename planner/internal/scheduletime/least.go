package scheduletime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Least returns the smallest budget found with which a choice fits, if all GPUs have the same: of one
// micro-batch at a time with all blocks recomputed, or of a published order.
func Least(question *Question) (int64, error) {
	search := &search{Question: question, ctx: nil}
	least, failed := int64(0), error(ErrNone)
	again := slices.Repeat([]bool{true}, len(question.Blocks))
	for _, kind := range question.Kinds {
		table, err := question.Table(kind, again)
		if err != nil {
			failed = err
			continue
		}
		kinds := []costmodel.ScheduleKind{kind}
		if question.Own && !kind.Vee() && !kind.Split() {
			kinds = append(kinds, oneAtATime(len(question.Topology.Devices), table.Workload.MicroBatches))
		}
		for _, kind := range kinds {
			choice, err := search.level(kind, search.even(kind, table), again)
			if err != nil {
				failed = err
				continue
			}
			if needs := choice.needs(); least == 0 || needs < least {
				least, failed = needs, nil
			}
		}
	}
	return least, failed
}

// oneAtATime is the order of one micro-batch after the other.
func oneAtATime(gpus int, batches int64) costmodel.ScheduleKind {
	row := []costmodel.PassBlock{{Passes: "FB", Times: max(1, batches)}}
	return costmodel.OrderOf(false, slices.Repeat([][]costmodel.PassBlock{row}, gpus))
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
