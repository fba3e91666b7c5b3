package ops

// Adapter is a LoRA adapter on one linear layer of an op: A [Rank, In] and
// B [Out, Rank].
type Adapter struct {
	Module        string // path below the layer's: q_proj
	In, Out, Rank int64
	// Output: the linear layer leads back to the residual stream (o_proj,
	// down_proj). Up: its output is the factor without activation (up_proj).
	Output, Up bool
}

// Weights is the number of parameters.
func (a *Adapter) Weights() int64 { return a.Rank * (a.In + a.Out) }

// adapters are those whose linear layer reads the op's input, and the one
// that leads back to the residual stream, or nil.
func (s *Shape) adapters() (inputs []*Adapter, output *Adapter) {
	for i := range s.Adapters {
		if a := &s.Adapters[i]; a.Output {
			output = a
		} else {
			inputs = append(inputs, a)
		}
	}
	return inputs, output
}

// ab is the size of an element in an adapter's products: autocast runs them
// in 16 bits, and so does a gathered copy of that type.
func (s *Shape) ab() int64 {
	if s.Precision.Mixed() || s.Adapters16 {
		return 2
	}
	return 4
}

// converts reports that a 16-bit base meets fp32 adapters: x.to(fp32) before,
// result.to(dtype) after (peft/tuners/lora/layer.py, Linear.forward).
func (s *Shape) converts() bool { return s.ab() != s.e() }

// input is the copy of its input that an adapter keeps for A's gradient: fp32
// (_cast_input_dtype) or autocast's. Only fp32 on fp32 reads the base's own
// tensor, and shared says that something else keeps that.
func (s *Shape) input(a *Adapter, shared bool) int64 {
	if shared && !s.converts() && !s.Precision.Mixed() {
		return 0
	}
	return s.ab() * a.In * s.Tokens
}

// inner is A's output, kept for B's gradient, with autocast's copies of both.
func (s *Shape) inner(a *Adapter) int64 {
	n := s.ab() * a.Rank * s.Tokens
	if s.Precision.Mixed() {
		n += 2 * a.Weights()
	}
	return n
}

// kept is what the adapters keep for backward. outputShared: the input of the
// linear layer that leads back is kept anyway.
func (s *Shape) kept(outputShared bool) int64 {
	var n int64
	inputs, output := s.adapters()
	for i, a := range inputs {
		n += s.input(a, i > 0) + s.inner(a)
	}
	if output != nil {
		n += s.input(output, outputShared) + s.inner(output)
	}
	return n
}

// work is the most that an adapter adds to a forward: its input's copy and
// A's output, B's output and the scaled one.
func (s *Shape) work() int64 {
	var n int64
	for i := range s.Adapters {
		a := &s.Adapters[i]
		n = max(n, s.input(a, true)+s.inner(a)+2*s.ab()*a.Out*s.Tokens)
	}
	return n
}

// gradBytes is the size of an element of an adapter's gradient.
func (s *Shape) gradBytes() int64 {
	if s.Adapters16 {
		return 2
	}
	return 4
}
