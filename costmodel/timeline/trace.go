package timeline

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// Step is what one device does: a step, and what a training program does between steps.
type Step struct {
	parts []producer
	// whole has every micro-batch, where parts leave out equal ones; nil: the trace is of the parts.
	whole producer
}

// Moment is a moment of a step.
type Moment struct {
	Peak
	// Layer is the module or the buffer that the moment is of; empty: it is of none.
	Layer string
	// After is the memory once the moment has ended, until the next one begins.
	After costmodel.Memory
	// Action is the pass of a pipeline's rank; nil: the moment is in none.
	Action *order.Action
}

// Holding is what one owner has on a device at a moment: a module, or a buffer of an engine.
type Holding struct {
	Owner  string
	Memory costmodel.Memory
	// Passing: it is there at this moment only.
	Passing bool
}

// Trace are all moments of a step on one device.
type Trace struct {
	Moments []Moment
	// Peak is the index of [Step.Peak].
	Peak int
	// Live is what is there at the peak. It adds up to the peak in each category.
	Live []Holding
	// Throughout is what is there from the first moment on.
	Throughout []Holding
}

// Same reports that two steps are one: equal devices share theirs.
func (step Step) Same(other Step) bool {
	return len(step.parts) > 0 && len(other.parts) > 0 && &step.parts[0] == &other.parts[0]
}

// Peak is the first of the largest moments.
func (step Step) Peak() Peak {
	var most Peak
	for i, events := range step.parts {
		if peak := walk(events); i == 0 || peak.Memory.Total() > most.Memory.Total() {
			most = peak
		}
	}
	return most
}

// Trace follows a step moment by moment, with every micro-batch of a pipeline unless there are thousands.
func (step Step) Trace() Trace {
	parts := step.parts
	if step.whole != nil {
		parts = []producer{step.whole}
	}
	var out Trace
	var begins []int // by part: its first moment
	var most int64
	for _, events := range parts {
		begins = append(begins, len(out.Moments))
		var now costmodel.Memory
		events(func(event stepEvent) {
			now = add(now, event.Change, 1)
			if event.What == "" {
				if last := len(out.Moments) - 1; last >= begins[len(begins)-1] {
					out.Moments[last].After = now
				}
				return
			}
			moment := Moment{Peak{add(now, event.Over, 1), event.What + event.Layer}, cmp.Or(event.Layer, event.Owner), now, event.Action}
			if bytes := moment.Memory.Total(); len(out.Moments) == 0 || bytes > most {
				most, out.Peak = bytes, len(out.Moments)
			}
			out.Moments = append(out.Moments, moment)
		})
	}
	for i, events := range parts {
		if end := append(begins, len(out.Moments))[i+1]; begins[i] <= out.Peak && out.Peak < end {
			out.Live = holdings(events, out.Peak-begins[i])
			out.Throughout = holdings(events, 0)
		}
	}
	return out
}

// holdings is what there is at a moment, by owner in the order of its first change.
func holdings(events producer, at int) (live []Holding) {
	index, moment := map[string]int{}, 0
	events(func(event stepEvent) {
		if moment > at {
			return
		}
		owner := cmp.Or(event.Owner, event.Layer, event.What)
		if event.Change != (costmodel.Memory{}) {
			place, known := index[owner]
			if !known {
				place, index[owner] = len(live), len(live)
				live = append(live, Holding{Owner: owner})
			}
			live[place].Memory = add(live[place].Memory, event.Change, 1)
		}
		if event.What == "" {
			return
		}
		moment++
		if moment > at {
			live = momentary(live, event)
		}
	})
	out := live[:0]
	for _, holding := range live {
		if holding.Memory != (costmodel.Memory{}) {
			out = append(out, holding)
		}
	}
	return out
}

// momentary adds what is there at a moment only. A moment can have less of a category than the events
// before left: the layer has released a part. momentary takes it off the layer's holding, or off the
// largest ones.
func momentary(live []Holding, event stepEvent) []Holding {
	over := event.Over
	for _, part := range categories {
		less := -*part(&over)
		if less <= 0 {
			continue
		}
		*part(&over) = 0
		of := func(holding *Holding) int64 { return *part(&holding.Memory) }
		for less > 0 {
			most := 0
			for i := range live {
				if live[i].Owner == event.Layer && of(&live[i]) > 0 {
					most = i
					break
				}
				if of(&live[i]) > of(&live[most]) {
					most = i
				}
			}
			gone := min(less, of(&live[most]))
			if gone <= 0 { // more than there is
				*part(&over) = -less
				break
			}
			*part(&live[most].Memory) -= gone
			less -= gone
		}
	}
	if over != (costmodel.Memory{}) {
		live = append(live, Holding{Owner: event.What + event.Layer, Memory: over, Passing: true})
	}
	return live
}

// categories are the parts of memory.
var categories = []func(*costmodel.Memory) *int64{
	func(memory *costmodel.Memory) *int64 { return &memory.Params },
	func(memory *costmodel.Memory) *int64 { return &memory.Grads },
	func(memory *costmodel.Memory) *int64 { return &memory.OptimizerState },
	func(memory *costmodel.Memory) *int64 { return &memory.Activations },
	func(memory *costmodel.Memory) *int64 { return &memory.KVCache },
	func(memory *costmodel.Memory) *int64 { return &memory.Workspace },
	func(memory *costmodel.Memory) *int64 { return &memory.CommBuffers },
}
