package order

import "github.com/devmap-dev/devmap/costmodel"

// Column is a rank's column in torch's table of time steps of an interleaved schedule. The rank
// waits for as many steps as its number. It runs its first forwards and waits for the first
// backward. From step Middle to step End it alternates a forward and a backward. Then it runs a
// backward in every other step. Source: torch 2.11, distributed/pipelining/schedules.py,
// _get_1f1b_rank_ops.
type Column struct {
	// Middle and End bound the steps that repeat every Round steps: each chunk has its round of
	// micro-batches.
	Middle, End, Round int64
	// Length is the number of steps.
	Length int64
	// At returns the action of a step; false: the rank waits.
	At func(step int64) (Action, bool)
}

// ColumnOf returns a rank's column of the table.
func ColumnOf(schedule costmodel.Schedule, rank int64) Column {
	warm, all := warmUp(schedule, rank), schedule.Chunks*schedule.MicroBatches
	wait := int64(0)
	if warm > 0 {
		wait = max(0, schedule.Chunks*schedule.Stages+2*(schedule.Stages-1-rank)-warm-rank)
	}
	middle := rank + warm + wait
	end := middle + 2*(all-warm)
	return Column{Middle: middle, End: end, Round: 2 * schedule.Chunks * perRound(schedule), Length: end + 2*warm, At: func(step int64) (Action, bool) {
		after := step - end
		switch middleStep := step - middle; {
		case rank <= step && step < rank+warm:
			return forward(schedule, step-rank), true
		case middleStep >= 0 && step < end && middleStep%2 == 0:
			return forward(schedule, warm+middleStep/2), true
		case middleStep >= 0 && step < end:
			return backward(schedule, middleStep/2), true
		case 0 <= after && after < 2*warm && after%2 == 1:
			return backward(schedule, all-warm+after/2), true
		}
		return Action{}, false
	}}
}
