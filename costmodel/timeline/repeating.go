package timeline

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// repeating emits the events of a schedule's phases in constant time for any number of
// micro-batches.
type repeating struct {
	emit func(stepEvent)
	// each is the change by a phase's second time, while counting.
	each     costmodel.Memory
	counting bool
}

func (step *repeating) tell(event stepEvent) {
	if step.counting {
		step.each = add(step.each, event.Change, 1)
	}
	step.emit(event)
}

// run emits a phase's first and last times; the times between change memory as the second does.
func (step *repeating) run(phase *order.Phase, act func(order.Action)) {
	step.each = costmodel.Memory{}
	phase.Ends(act, func() { step.counting = true }, func(times int64) {
		step.emit(stepEvent{Change: add(costmodel.Memory{}, step.each, times)})
	})
	step.counting = false
}
