package timeline

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// stepEvent is a change of a device's memory, and a moment. Change comes first and stays (or goes,
// if negative); Over is there only at the moment. Both are bytes by category.
type stepEvent struct {
	Change, Over costmodel.Memory
	// Together they name the moment if it is the peak, as "forward of " and "model.layers.3". Empty
	// What: the event is a change alone, inside another event's moment.
	What, Layer string
	// Owner is the module or the buffer that Change is of; empty: Layer.
	Owner string
	// Action is the pass of a pipeline's rank that the event is in; nil: it is in none.
	Action *order.Action
}

// Owners of changes that are of no module.
const (
	ofDevice    = "libraries and buckets"
	ofLastStep  = "gradients of the step before"
	ofOutputs   = "outputs of the model"
	ofGather    = "buffers of all-gathers"
	ofReduction = "buffers of reductions"
	ofReference = "reference model"
	ofReceive   = "receive buffers"
	ofRotary    = "cosines and sines of positions"
	ofStage     = "outputs of the stage"
	ofSent      = "gradient that was sent"
	ofLogits    = "logits of the evaluation"
)

// producer gives emit the events of one step on one device, in the order in which they happen.
// Every engine is a producer: [walk] and [folding] add its events up.
type producer func(emit func(stepEvent))

// Peak is the moment when a device holds most.
type Peak struct {
	Memory costmodel.Memory // by category, at that moment
	At     string           // "loss backward", "forward of model.layers.3", …
}

// walk reads events one by one: the first of the largest moments, by category.
// Predictions print it, and every map is checked with it.
func walk(events producer) Peak {
	var now, most costmodel.Memory
	var bytes, mostBytes int64 // of both, all categories
	var what, layer string
	events(func(event stepEvent) {
		now = add(now, event.Change, 1)
		bytes += event.Change.Total()
		if event.What == "" {
			return
		}
		if at := bytes + event.Over.Total(); what == "" || at > mostBytes {
			most, mostBytes = add(now, event.Over, 1), at
			what, layer = event.What, event.Layer
		}
	})
	return Peak{Memory: most, At: what + layer}
}

// outcome is the net change and the peak of a sequence of events, both above the memory before it.
// A sequence without a moment has a peak of 0.
type outcome struct{ Net, Peak int64 }

// folding is a fold as far as events were read.
type folding struct {
	outcome
	seen bool // a moment
}

func (reading *folding) add(event stepEvent) {
	reading.Net += event.Change.Total()
	if event.What == "" {
		return
	}
	if at := reading.Net + event.Over.Total(); !reading.seen || at > reading.Peak {
		reading.Peak, reading.seen = at, true
	}
}

// take is the fold, after which the next one begins.
func (reading *folding) take() outcome {
	out := reading.outcome
	*reading = folding{}
	return out
}

// join is an outcome followed by the next. It is associative, so that the
// outcomes of parts answer for whatever is put together from them.
func (first outcome) join(next outcome) outcome {
	return outcome{Net: first.Net + next.Net, Peak: max(first.Peak, first.Net+next.Peak)}
}

// add is memory and so many times more.
func add(memory, more costmodel.Memory, times int64) costmodel.Memory {
	return costmodel.Memory{
		Params:         memory.Params + times*more.Params,
		Grads:          memory.Grads + times*more.Grads,
		OptimizerState: memory.OptimizerState + times*more.OptimizerState,
		Activations:    memory.Activations + times*more.Activations,
		KVCache:        memory.KVCache + times*more.KVCache,
		Workspace:      memory.Workspace + times*more.Workspace,
		CommBuffers:    memory.CommBuffers + times*more.CommBuffers,
	}
}

// activations, gradients and buffers are an amount of one category.
func activations(bytes int64) costmodel.Memory { return costmodel.Memory{Activations: bytes} }
func gradients(bytes int64) costmodel.Memory   { return costmodel.Memory{Grads: bytes} }
func buffers(bytes int64) costmodel.Memory     { return costmodel.Memory{CommBuffers: bytes} }
