package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Peak is the moment when a device holds most.
type Peak struct {
	Memory costmodel.Memory // by category, at that moment
	At     string           // "loss backward", "forward of model.layers.3", …
}

// Walk goes through a step on one device, layer by layer, and returns its
// peak. It is the plain form of the timeline: [Run] and [Chain] are tested
// against it, and a map's check uses it. units stand in time order.
func Walk(mode costmodel.Mode, units []*costmodel.Unit, k Resident) Peak {
	w := walker{}
	w.start(units, &k)
	if mode == costmodel.Load {
		return w.peak
	}
	last := w.last(units, &k)
	for _, u := range units {
		w.forward(u)
	}
	w.late(units)
	w.now.Activations += k.Output
	w.see("end of forward", 0, 0)
	w.now.Grads -= last
	if k.OutputDropped {
		w.now.Activations -= k.Output
	}
	if mode == costmodel.Train {
		for i := len(units) - 1; i >= 0; i-- {
			w.backward(units[i])
		}
		var step int64
		for _, u := range units {
			step += u.StepTransient
			w.see("backward of "+u.Name, u.Last, 0)
		}
		w.see("optimizer step", step, 0)
	}
	return w.peak
}

type walker struct {
	now  costmodel.Memory
	peak Peak
}

// start is what is there throughout.
func (w *walker) start(units []*costmodel.Unit, k *Resident) {
	products := false
	for _, u := range units {
		w.now.Params += u.Params + u.Buffers
		w.now.OptimizerState += u.OptimizerState
		w.now.Grads += u.HeldGrads
		w.now.Workspace += u.Padding // allocator rounding of parameters
		products = products || u.Products
	}
	if products {
		w.now.Workspace += k.Workspace
	}
	w.now.CommBuffers += k.Buckets
	w.see("weights", 0, 0)
}

// last adds the gradients that the step before left, where they stay.
func (w *walker) last(units []*costmodel.Unit, k *Resident) int64 {
	if !k.LastGradients {
		return 0
	}
	var n int64
	for _, u := range units {
		for i := range u.Steps {
			n += u.Steps[i].Grads
		}
	}
	w.now.Grads += n
	w.see("weights", 0, 0)
	return n
}

// see notes a moment with transient activations and gradients on top.
func (w *walker) see(at string, activations, grads int64) {
	m := w.now
	m.Activations += activations
	m.Grads += grads
	if w.peak.At == "" || m.Total() > w.peak.Memory.Total() {
		w.peak = Peak{Memory: m, At: at}
	}
}

func (w *walker) forward(u *costmodel.Unit) {
	defer func() {
		w.now.Activations += u.Handed + u.Cached
		w.see("forward of "+u.Name, 0, 0)
	}()
	if u.Recompute {
		var inner int64
		for i := range u.Steps {
			w.see("forward of "+u.Steps[i].Layer, inner+u.Steps[i].Forward, 0)
			inner += u.Steps[i].Saved
		}
		for i := range u.Steps {
			w.now.Activations += u.Steps[i].Kept
		}
		return
	}
	for i := range u.Steps {
		s := &u.Steps[i]
		at := "forward of " + s.Layer
		if s.Loss {
			at = "loss forward"
		}
		w.now.KVCache += s.KV // Forward counts it, and it stays
		w.see(at, s.Forward-s.KV, 0)
		w.now.Activations += s.Saved + s.Held
	}
}

// late ends a forward of inference: the body's own tensors go, and the head
// runs; where tokens are generated, once more with caches that have grown.
func (w *walker) late(units []*costmodel.Unit) {
	grown := w.ripen(units)
	for _, u := range units {
		w.lateIn(u, grown)
	}
}

// ripen drops what the body held and completes the caches; it reports whether
// they grow.
func (w *walker) ripen(units []*costmodel.Unit) (grown bool) {
	for _, u := range units {
		w.now.Activations -= u.Cached
		for i := range u.Steps {
			w.now.Activations -= u.Steps[i].Held
			w.now.KVCache += u.Steps[i].Grown
			grown = grown || u.Steps[i].Grown != 0
		}
	}
	return grown
}

func (w *walker) lateIn(u *costmodel.Unit, grown bool) {
	for i := range u.Steps {
		s := &u.Steps[i]
		switch {
		case s.Late == 0:
		case grown:
			w.see("last token in "+s.Layer, s.Late, 0)
		default:
			w.see("forward of "+s.Layer, s.Late, 0)
		}
	}
}

func (w *walker) backward(u *costmodel.Unit) {
	w.now.Activations -= u.Handed
	if u.Recompute {
		for i := range u.Steps {
			w.now.Activations -= u.Steps[i].Kept // Forward counts it
			w.see("recompute of "+u.Steps[i].Layer, u.Steps[i].Forward, 0)
			w.now.Activations += u.Steps[i].Saved
		}
	}
	for i := len(u.Steps) - 1; i >= 0; i-- {
		s := &u.Steps[i]
		at := "backward of " + s.Layer
		if s.Loss {
			at = "loss backward"
		}
		w.see(at, s.Backward-s.BackwardGrads, s.BackwardGrads)
		w.now.Activations -= s.Saved
		w.now.Grads += s.Grads
	}
}
