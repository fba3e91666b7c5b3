package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Summary is the closed form of the timeline of a stretch of layers on one
// device. It is a monoid under [Summary.Join]; the zero Summary is empty.
//
// With saved(i) and grads(i) of layer i, over a stretch [a, b):
//
//	Forward  = max over l of  saved(a..l−1) + held(a..l−1) + forward(l)
//	Backward = max over l of  saved(a..l) + grads(l+1..b−1) + backward(l)
type Summary struct {
	Static        int64 // alive throughout
	Saved         int64 // kept after forward: activations and KV cache
	Grads         int64 // left by backward
	Forward       int64 // peak of forward, above Static
	Backward      int64 // peak of backward, above Static
	Last          int64 // peak of a backward after all others, above Grads
	StepTransient int64
	Held          int64 // kept to the end of the model's body
	Grown         int64 // what the KV cache gains after the prompt
	Late          int64 // peak when all of Saved and Grown is there, above them
	Products      bool  // anything in it runs matrix products
}

// Join is the run of r followed by s on the same device.
func (r Summary) Join(s Summary) Summary {
	return Summary{
		Static:        r.Static + s.Static,
		Saved:         r.Saved + s.Saved,
		Grads:         r.Grads + s.Grads,
		Forward:       max(r.Forward, r.Saved+r.Held+s.Forward),
		Backward:      max(r.Saved+s.Backward, s.Grads+r.Backward),
		Last:          max(r.Last, s.Last),
		StepTransient: r.StepTransient + s.StepTransient,
		Held:          r.Held + s.Held,
		Grown:         r.Grown + s.Grown,
		Late:          max(r.Late, s.Late),
		Products:      r.Products || s.Products,
	}
}

// ofStep is the closed form of one layer.
func ofStep(s *costmodel.Step) Summary {
	return Summary{
		Saved: s.Saved + s.KV, Grads: s.Grads, Forward: s.Forward, Backward: s.Saved + s.KV + s.Backward,
		Held: s.Held, Grown: s.Grown, Late: s.Late,
	}
}

// Of is the closed form of one unit.
func Of(u *costmodel.Unit) Summary {
	var r Summary
	for i := range u.Steps {
		r = r.Join(ofStep(&u.Steps[i]))
	}
	if u.Recompute { // backward runs forward again first
		kept, again := recomputed(u)
		r = Summary{Grads: r.Grads, Saved: kept, Forward: max(r.Forward, kept), Backward: max(again, r.Backward, kept)}
	}
	if u.Handed > 0 { // gone once the unit's own backward starts
		r.Saved += u.Handed
		r.Forward, r.Backward = max(r.Forward, r.Saved), max(r.Backward, r.Saved)
	}
	r.Held += u.Cached
	r.Forward = max(r.Forward, r.Saved+r.Held)
	r.Static, r.Last, r.StepTransient, r.Products = u.Static(), u.Last, u.StepTransient, u.Products
	return r
}

// recomputed is what a recomputed unit keeps until its backward, and the peak while
// it runs again, layer by layer: what it kept of a layer goes, what the layer
// saves comes.
func recomputed(u *costmodel.Unit) (kept, peak int64) {
	for i := range u.Steps {
		kept += u.Steps[i].Kept
	}
	now := kept
	for i := range u.Steps {
		s := &u.Steps[i]
		now -= s.Kept
		peak = max(peak, now+s.Forward)
		now += s.Saved
	}
	return kept, peak
}

// Resident is what a device holds besides its units.
type Resident struct {
	Workspace int64 // throughout, where the device runs matrix products
	Output    int64 // from the end of forward on: the model's outputs, copied to the input's device
	// OutputDropped: Output is gone before backward begins.
	OutputDropped bool
	// Buckets are buffers for communication, throughout.
	Buckets int64
	// LastGradients: gradients of the step before are there until backward.
	LastGradients bool
}

// Peak is the most that a device with this run holds at once.
func (r Summary) Peak(k Resident) int64 {
	kept := k.Output // in backward and the step
	if k.OutputDropped {
		kept = 0
	}
	var last int64
	if k.LastGradients {
		last = r.Grads
	}
	phases := max(last+r.Forward, last+r.Saved+r.Grown+max(r.Late, k.Output), r.Backward+kept, r.Grads+max(r.Last, r.StepTransient)+kept)
	if r.Products {
		phases += k.Workspace
	}
	return r.Static + k.Buckets + phases
}
