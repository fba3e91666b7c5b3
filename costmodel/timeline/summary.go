package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Summary is a stretch of units on one device in a few figures: the folds of
// its forward and of its backward, and what is outside of both. Forward and
// backward nest, as of two stretches the later one runs back first, and so do
// summaries ([Summary.Join]): they are a monoid, and the zero Summary is empty.
type Summary struct {
	Static int64 // alive throughout
	Saved  int64 // kept after forward: activations and KV cache
	Grads  int64 // left by backward
	// Forward is the peak of forward, above Static; Backward that of backward,
	// at whose start Saved is there.
	Forward, Backward int64
	LastBackward      int64 // peak of a backward after all others, above Grads
	StepTransient     int64 // what the optimizer's step adds
	UntilBodyEnd      int64 // kept to the end of the model's body
	CacheGrowth       int64 // what the KV cache gains after the prompt
	HeadPeak          int64 // peak when all of Saved and Grown is there, above them
	Products          bool  // anything in it runs matrix products
}

// Of folds the events of one unit.
func Of(unit *costmodel.Unit) Summary {
	alone := units{unit}
	sum, forward, end := alone.totals(), FoldOf(alone.forward), FoldOf(alone.bodyEnd)
	out := Summary{
		Static:        FoldOf(alone.static).Net,
		Grads:         sum.grads,
		Forward:       forward.Peak,
		LastBackward:  FoldOf(alone.last).Peak,
		StepTransient: sum.step,
		HeadPeak:      FoldOf(alone.head).Peak,
		Products:      sum.products,
	}
	for i := range unit.Layers {
		out.CacheGrowth += unit.Layers[i].CacheGrowth
	}
	out.UntilBodyEnd = out.CacheGrowth - end.Net
	out.Saved = forward.Net - out.UntilBodyEnd
	out.Backward = out.Saved + FoldOf(alone.backward).Peak
	return out
}

// folds are those of forward, and of backward from where that starts.
func (s *Summary) folds() (forward, backward Fold) {
	return Fold{s.Saved + s.UntilBodyEnd, s.Forward}, Fold{s.Grads - s.Saved, s.Backward - s.Saved}
}

// Join is s followed by next on the same device.
func (s Summary) Join(next Summary) Summary {
	forward, backward := s.folds()
	nextForward, nextBackward := next.folds()
	saved := s.Saved + next.Saved
	return Summary{
		Static:        s.Static + next.Static,
		Saved:         saved,
		Grads:         s.Grads + next.Grads,
		Forward:       forward.Join(nextForward).Peak,
		Backward:      saved + nextBackward.Join(backward).Peak,
		LastBackward:  max(s.LastBackward, next.LastBackward),
		StepTransient: s.StepTransient + next.StepTransient,
		UntilBodyEnd:  s.UntilBodyEnd + next.UntilBodyEnd,
		CacheGrowth:   s.CacheGrowth + next.CacheGrowth,
		HeadPeak:      max(s.HeadPeak, next.HeadPeak),
		Products:      s.Products || next.Products,
	}
}

// Least is at most both in every figure.
func (s Summary) Least(other Summary) Summary {
	return Summary{
		Static:        min(s.Static, other.Static),
		Saved:         min(s.Saved, other.Saved),
		Grads:         min(s.Grads, other.Grads),
		Forward:       min(s.Forward, other.Forward),
		Backward:      min(s.Backward, other.Backward),
		LastBackward:  min(s.LastBackward, other.LastBackward),
		StepTransient: min(s.StepTransient, other.StepTransient),
		UntilBodyEnd:  min(s.UntilBodyEnd, other.UntilBodyEnd),
		CacheGrowth:   min(s.CacheGrowth, other.CacheGrowth),
		HeadPeak:      min(s.HeadPeak, other.HeadPeak),
		Products:      s.Products && other.Products,
	}
}

// The Summary as a [stretch]: each part is one event, at whose moment there is
// the most of the part.

func (s *Summary) totals() totals {
	return totals{grads: s.Grads, step: s.StepTransient, products: s.Products}
}

func (s *Summary) static(emit func(Event)) {
	emit(Event{Change: costmodel.Memory{Params: s.Static}})
}

func (s *Summary) forward(emit func(Event)) {
	forward, _ := s.folds()
	emit(forward.event("forward"))
}

func (s *Summary) bodyEnd(emit func(Event)) {
	emit(Event{Change: activations(s.CacheGrowth - s.UntilBodyEnd)})
}

func (s *Summary) head(emit func(Event)) { emit(Fold{0, s.HeadPeak}.event("head")) }

func (s *Summary) infer(emit func(Event)) {
	emit(Fold{0, s.Forward}.event("forward"))
	emit(Fold{0, s.HeadPeak}.event("head"))
}

func (s *Summary) backward(emit func(Event)) {
	_, backward := s.folds()
	emit(backward.event("backward"))
}

func (s *Summary) last(emit func(Event)) { emit(Fold{0, s.LastBackward}.event("last backward")) }

// event stands for the whole sequence that was folded.
func (f Fold) event(what string) Event {
	return Event{Change: activations(f.Net), Over: activations(f.Peak - f.Net), What: what}
}
