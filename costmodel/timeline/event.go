package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Event is a change of what a device holds, and a moment to look at: first
// Change comes and stays (or goes, where it is negative), then Over is there
// besides for a while. Both are bytes by category.
type Event struct {
	Change, Over costmodel.Memory
	// What and Layer name the moment together, once it is the peak: "forward
	// of " and "model.layers.3". Without What the event is a change alone, in
	// the middle of something that another event looks at.
	What, Layer string
}

// Producer hands the events of one step on one device to emit, in the order
// in which they happen. An engine is a Producer and nothing else: what its
// events add up to is for [Walk] and [FoldOf] to say.
type Producer func(emit func(Event))

// Peak is the moment when a device holds most.
type Peak struct {
	Memory costmodel.Memory // by category, at that moment
	At     string           // "loss backward", "forward of model.layers.3", …
}

// Walk is the plain reading of events, one by one: the first of the largest
// moments, by category. It is what is printed, and what every map is checked
// with.
func Walk(events Producer) Peak {
	var now, most costmodel.Memory
	var bytes, mostBytes int64 // of both, all categories
	var what, layer string
	events(func(event Event) {
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

// Fold is what any sequence of events adds up to: what it leaves, and the most
// at its moments, both above what was there before it. A sequence without a
// moment has a peak of 0.
type Fold struct{ Net, Peak int64 }

// FoldOf is the closed reading of events: their sum, whatever their
// categories. Its Peak is that of [Walk].
func FoldOf(events Producer) Fold {
	var reading folding
	events(reading.add)
	return reading.Fold
}

// folding is a fold as far as events were read.
type folding struct {
	Fold
	seen bool // a moment
}

func (reading *folding) add(event Event) {
	reading.Net += event.Change.Total()
	if event.What == "" {
		return
	}
	if at := reading.Net + event.Over.Total(); !reading.seen || at > reading.Peak {
		reading.Peak, reading.seen = at, true
	}
}

// take is the fold, after which the next one begins.
func (reading *folding) take() Fold {
	out := reading.Fold
	*reading = folding{}
	return out
}

// Join is the fold followed by next. It is associative, so that the folds of
// parts, once made, answer for whatever is put together from them.
func (fold Fold) Join(next Fold) Fold {
	return Fold{Net: fold.Net + next.Net, Peak: max(fold.Peak, fold.Net+next.Peak)}
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
