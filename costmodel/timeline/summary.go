package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Summary is a stretch of units on one device in a few figures: the folds of forward and of
// backward, and everything outside of both. In backward the later stretch runs first. Summaries
// join ([Summary.Join]) as a monoid; the zero Summary is empty.
type Summary struct {
	Static int64 // alive throughout
	Saved  int64 // kept after forward: activations and KV cache
	Grads  int64 // left by backward
	// Forward is the peak of forward, above Static; Backward is the peak of backward, Saved included.
	Forward, Backward int64
	LastBackward      int64 // peak of a backward after all others, above Grads
	StepTransient     int64 // the optimizer's step's temporaries
	UntilBodyEnd      int64 // kept to the end of the model's body
	CacheGrowth       int64 // the KV cache's growth after the prompt
	HeadPeak          int64 // peak with Saved and CacheGrowth, above them
	Products          bool  // anything in it runs matrix products
	// If replicas of a pipeline's stage shard its parameters: Gathering is the peak of the first
	// forward, above Static. It leaves Gathered and Saved. Reducing is the peak of the reduction
	// after the last backward, above its result: Reduced replaces Gathered and Grads.
	Gathering, Gathered, Reducing, Reduced int64
}

// Of summarizes one unit's events.
func Of(unit *costmodel.Unit) Summary {
	var reading folding
	return reading.of(unit, reading.add)
}

// of is [Of] with the reading's add, which callers make once for many units.
func (reading *folding) of(unit *costmodel.Unit, add func(stepEvent)) Summary {
	alone := unitList{unit}
	sum := alone.totals()
	out := Summary{Grads: sum.grads, StepTransient: sum.step, Products: sum.products}
	for i := range unit.Layers {
		out.CacheGrowth += unit.Layers[i].CacheGrowth
	}
	alone.static(add)
	out.Static = reading.take().Net
	alone.forward(add)
	forward := reading.take()
	alone.bodyEnd(add)
	out.UntilBodyEnd = out.CacheGrowth - reading.take().Net
	alone.head(add)
	out.HeadPeak = reading.take().Peak
	out.Forward, out.Saved = forward.Peak, forward.Net-out.UntilBodyEnd
	alone.backward(add)
	out.Backward = out.Saved + reading.take().Peak
	alone.last(add)
	out.LastBackward = reading.take().Peak
	return out
}

// folds are the folds of forward, and of backward from its start.
func (summary *Summary) folds() (forward, backward outcome) {
	forward = outcome{Net: summary.Saved + summary.UntilBodyEnd, Peak: summary.Forward}
	return forward, outcome{Net: summary.Grads - summary.Saved, Peak: summary.Backward - summary.Saved}
}

// Join is the summary followed by next on the same device.
func (summary Summary) Join(next Summary) Summary {
	summary.add(&next)
	return summary
}

// add is [Summary.Join] in place.
func (summary *Summary) add(next *Summary) {
	forward, backward := summary.folds()
	nextForward, nextBackward := next.folds()
	shared := summary.shared() || next.shared()
	gather, reduce := summary.shardFolds()
	nextGather, nextReduce := next.shardFolds()
	summary.Static += next.Static
	summary.Saved += next.Saved
	summary.Grads += next.Grads
	summary.Forward = forward.join(nextForward).Peak
	summary.Backward = summary.Saved + nextBackward.join(backward).Peak
	summary.LastBackward = max(summary.LastBackward, next.LastBackward)
	summary.StepTransient += next.StepTransient
	summary.UntilBodyEnd += next.UntilBodyEnd
	summary.CacheGrowth += next.CacheGrowth
	summary.HeadPeak = max(summary.HeadPeak, next.HeadPeak)
	summary.Products = summary.Products || next.Products
	if both := reduce.join(nextReduce); shared {
		summary.Gathering, summary.Reducing = gather.join(nextGather).Peak, both.Peak-both.Net
	}
	summary.Gathered += next.Gathered
	summary.Reduced += next.Reduced
}

// Least is at most both in every figure.
func (summary Summary) Least(other Summary) Summary {
	return Summary{
		Static:        min(summary.Static, other.Static),
		Saved:         min(summary.Saved, other.Saved),
		Grads:         min(summary.Grads, other.Grads),
		Forward:       min(summary.Forward, other.Forward),
		Backward:      min(summary.Backward, other.Backward),
		LastBackward:  min(summary.LastBackward, other.LastBackward),
		StepTransient: min(summary.StepTransient, other.StepTransient),
		UntilBodyEnd:  min(summary.UntilBodyEnd, other.UntilBodyEnd),
		CacheGrowth:   min(summary.CacheGrowth, other.CacheGrowth),
		HeadPeak:      min(summary.HeadPeak, other.HeadPeak),
		Products:      summary.Products && other.Products,
		Gathering:     min(summary.Gathering, other.Gathering),
		Gathered:      min(summary.Gathered, other.Gathered),
		Reducing:      min(summary.Reducing, other.Reducing),
		Reduced:       min(summary.Reduced, other.Reduced),
	}
}

// The Summary as a [stretch]: each part is one event, at the part's peak.

func (summary *Summary) totals() totals {
	return totals{grads: summary.Grads, step: summary.StepTransient, products: summary.Products}
}

func (summary *Summary) static(emit func(stepEvent)) {
	emit(stepEvent{Change: costmodel.Memory{Params: summary.Static}})
}

func (summary *Summary) forward(emit func(stepEvent)) {
	forward, _ := summary.folds()
	emit(forward.event("forward"))
}

func (summary *Summary) bodyEnd(emit func(stepEvent)) {
	emit(stepEvent{Change: activations(summary.CacheGrowth - summary.UntilBodyEnd)})
}

func (summary *Summary) head(emit func(stepEvent)) { emit(outcome{0, summary.HeadPeak}.event("head")) }

func (summary *Summary) infer(emit func(stepEvent)) {
	emit(outcome{0, summary.Forward}.event("forward"))
	emit(outcome{0, summary.HeadPeak}.event("head"))
}

func (summary *Summary) backward(emit func(stepEvent)) {
	_, backward := summary.folds()
	emit(backward.event("backward"))
}

func (summary *Summary) last(emit func(stepEvent)) {
	emit(outcome{0, summary.LastBackward}.event("last backward"))
}

// event represents the whole sequence that was folded.
func (first outcome) event(what string) stepEvent {
	return stepEvent{Change: activations(first.Net), Over: activations(first.Peak - first.Net), What: what}
}
