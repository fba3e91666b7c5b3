package costmodel

// Run is the closed form of the timeline of a stretch of layers on one
// device. It is a monoid under [Run.Join]; the zero Run is empty.
//
// With saved(i) and grads(i) of layer i, over a stretch [a, b):
//
//	Forward  = max over l of  saved(a..l−1) + forward(l)
//	Backward = max over l of  saved(a..l) + grads(l+1..b−1) + backward(l)
type Run struct {
	Static        int64 // alive throughout
	Saved         int64 // kept after forward: activations and KV cache
	Grads         int64 // left by backward
	Forward       int64 // peak of forward, above Static
	Backward      int64 // peak of backward, above Static
	StepTransient int64
}

// Join is the run of r followed by s on the same device.
func (r Run) Join(s Run) Run {
	return Run{
		Static:        r.Static + s.Static,
		Saved:         r.Saved + s.Saved,
		Grads:         r.Grads + s.Grads,
		Forward:       max(r.Forward, r.Saved+s.Forward),
		Backward:      max(r.Saved+s.Backward, s.Grads+r.Backward),
		StepTransient: r.StepTransient + s.StepTransient,
	}
}

// Run is the closed form of one layer.
func (s *Step) Run() Run {
	return Run{Saved: s.Saved + s.KV, Grads: s.Grads, Forward: s.Forward, Backward: s.Saved + s.KV + s.Backward}
}

// Run is the closed form of one unit.
func (u *Unit) Run() Run {
	var r Run
	for i := range u.Steps {
		r = r.Join(u.Steps[i].Run())
	}
	if u.Recompute { // backward runs forward again first
		r = Run{Grads: r.Grads, Forward: r.Forward, Backward: max(r.Forward, r.Backward)}
	}
	if u.Handed > 0 { // gone once the unit's own backward starts
		r.Saved += u.Handed
		r.Forward, r.Backward = max(r.Forward, r.Saved), max(r.Backward, r.Saved)
	}
	r.Static, r.StepTransient = u.Static(), u.StepTransient
	return r
}

// Kept is what a device holds besides its units.
type Kept struct {
	Workspace int64 // throughout, where the device runs anything
	Output    int64 // from the end of forward on: the model's outputs, copied to the input's device
}

// Peak is the most that a device with this run holds at once.
func (r Run) Peak(k Kept) int64 {
	phases := max(r.Forward, r.Saved+k.Output, r.Backward+k.Output, r.Grads+r.StepTransient+k.Output)
	return r.Static + k.Workspace + phases
}
