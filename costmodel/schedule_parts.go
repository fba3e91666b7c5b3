package costmodel

import "github.com/devmap-dev/devmap/costmodel/internal/value"

// Parts says which numbers of micro-batches of a batch the schedule takes, the
// nearest to its own; if none is, which batch would do.
func (schedule Schedule) Parts(batch int64) Message {
	takes := func(value int64) bool {
		schedule.MicroBatches = value
		return schedule.Check() == nil
	}
	if near := value.NearestDivisors(schedule.MicroBatches, batch, takes); near != "" {
		return Messagef("%s", near)
	}
	parts := schedule.Stages // one round, which every schedule takes
	return Messagef("%v %v do", Set("batch", (batch+parts-1)/parts*parts), Set("micro_batches", parts))
}
