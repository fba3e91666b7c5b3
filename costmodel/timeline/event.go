package timeline

import "github.com/devmap-dev/devmap/costmodel"

// stepEvent is a change of what a device holds, and a moment to look at: first
// Change comes and stays (or goes, if it is negative), then Over is there in
// addition for a while. Both are bytes by category.
type stepEvent struct {
	Change, Over costmodel.Memory
	// What and Layer name the moment together, once it is the peak: "forward
	// of " and "model.layers.3". Without What the event is a change alone, in
	// the middle of something that another event looks at.
	What, Layer string
}

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

// outcome is what any sequence of events adds up to: what it leaves, and the most at its moments,
// both above what was there before it. A sequence without a moment has a peak of 0.
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
