package ops

// Adapter is a LoRA adapter on one linear layer of an op: A [Rank, In] and
// B [Out, Rank].
type Adapter struct {
	Module        string // path below the layer's, for example q_proj
	In, Out, Rank int64
	// Output: the linear layer writes to the residual stream (o_proj, down_proj). Up: its output is
	// the factor without activation (up_proj).
	Output, Up bool
	// Folded: the adapter is on a mixture's parameter of so many elements. Each forward adds the
	// product of A and B to the weight (peft/tuners/lora/layer.py, ParamWrapper: baddbmm). Rank is
	// the sum over all experts.
	Folded int64
}

// Weights returns the number of parameters.
func (adapter *Adapter) Weights() int64 { return adapter.Rank * (adapter.In + adapter.Out) }

// adapters returns the adapters whose linear layer reads the op's input, and the one whose layer
// writes to the residual stream, or nil.
func (shape *Shape) adapters() (inputs []*Adapter, output *Adapter) {
	for i := range shape.Adapters {
		if adapter := &shape.Adapters[i]; adapter.Output {
			output = adapter
		} else if adapter.Folded == 0 {
			inputs = append(inputs, adapter)
		}
	}
	return inputs, output
}

// adapterBytes returns the bytes per element in an adapter's products. Autocast runs them in 16
// bits, and so does a gathered 16-bit copy.
func (shape *Shape) adapterBytes() int64 {
	if shape.autocasts() || shape.Adapters16 {
		return 2
	}
	return 4
}

// autocasts reports that adapters run on autocast's copies.
func (shape *Shape) autocasts() bool { return MixedPrecision(shape.Precision) || shape.AdapterCasts }

// converts reports adapters of another type than the base, for example fp32 on 16 bits. PEFT casts
// the input to fp32 and the result back (peft/tuners/lora/layer.py, Linear.forward).
func (shape *Shape) converts() bool { return shape.adapterBytes() != shape.elementBytes() }

// quantized16 reports adapters on a quantized base with a 16-bit stream. PEFT's layer leaves the
// casts to autocast (peft/tuners/lora/bnb.py, Linear4bit.forward), which does not copy 16-bit
// tensors.
func quantized16(shape *Shape) bool { return shape.Quantize != "" && shape.AdapterCasts }

// input returns the bytes of the input's copy that an adapter keeps for A's gradient: fp32
// (_cast_input_dtype) or autocast's. Only an fp32 adapter on an fp32 base reads the base's own
// tensor. shared says that something else keeps that tensor.
func (adapter *Adapter) input(shape *Shape, shared bool) int64 {
	if shape.AdapterDropout { // dropout's result, and its mask if the input needs a gradient
		mask := int64(1)
		if !adapter.Output && !shape.InputGrad {
			mask = 0
		}
		return (shape.adapterBytes() + mask) * adapter.In * shape.Tokens
	}
	if shared && !shape.converts() && (!shape.autocasts() || quantized16(shape)) {
		return 0
	}
	return shape.adapterBytes() * adapter.In * shape.Tokens
}

// widened reports that A's input becomes fp32 before autocast makes it 16 bits (_cast_input_dtype).
// That holds for a 16-bit base, and for an fp32 base if autocast made the input. It never holds for
// a quantized base.
func (adapter *Adapter) widened(shape *Shape) bool {
	return shape.autocasts() && shape.Quantize == "" && (shape.AdapterCasts || adapter.Output)
}

// copied returns the bytes of an adapter's forward in addition to those it keeps: the fp32 copy of
// its input, throughout, and dropout's result until it is cast.
func (adapter *Adapter) copied(shape *Shape) (input, dropped int64) {
	size := adapter.In * shape.Tokens
	if adapter.widened(shape) || shape.AdapterDropout && shape.converts() {
		input = 4 * size
	}
	if shape.AdapterDropout && shape.autocasts() && !quantized16(shape) {
		dropped = 4 * size
	}
	return input, dropped
}

// inner returns the bytes of A's output, kept for B's gradient, with autocast's copies of A and B.
func (adapter *Adapter) inner(shape *Shape) int64 {
	bytes := shape.adapterBytes() * adapter.Rank * shape.Tokens
	if shape.autocasts() && !shape.Adapters16 {
		bytes += 2 * adapter.Weights()
	}
	return bytes
}

// adapterSaved returns the bytes that the adapters keep for backward. outputShared: the input of
// the output's linear layer is kept anyway.
func (shape *Shape) adapterSaved(outputShared bool) int64 {
	inputs, output := shape.adapters()
	return shape.unfusedSaved(inputs, output, outputShared)
}

// unfusedSaved returns the bytes kept by adapters that PEFT runs one by one.
func (shape *Shape) unfusedSaved(inputs []*Adapter, output *Adapter, outputShared bool) int64 {
	var total int64
	for i, adapter := range inputs {
		total += adapter.input(shape, i > 0 || shape.LinearInputs && shape.InputGrad) + adapter.inner(shape)
	}
	if output != nil {
		total += output.inner(shape)
		// PEFT's layer on a quantized base casts no input under autocast (peft/tuners/lora/bnb.py),
		// and this input already has 16 bits.
		if !outputShared || shape.Quantize == "" || !shape.autocasts() || shape.AdapterDropout {
			total += output.input(shape, outputShared)
		}
	}
	return total
}

// work returns the most bytes that an adapter adds to a forward: its input's copy, A's output, B's
// output and the scaled output.
func (shape *Shape) work() int64 {
	var total int64
	for i := range shape.Adapters {
		total = max(total, shape.Adapters[i].unfusedWork(shape))
	}
	return total
}

// unfusedWork returns the bytes that one adapter adds to a forward.
func (adapter *Adapter) unfusedWork(shape *Shape) int64 {
	if adapter.Folded > 0 {
		return 0
	}
	copied, dropped := adapter.copied(shape)
	return adapter.input(shape, true) + copied + max(dropped, adapter.inner(shape)+2*shape.adapterBytes()*adapter.Out*shape.Tokens)
}

// gradBytes returns the bytes per element of an adapter's gradient.
func (shape *Shape) gradBytes() int64 {
	if shape.Adapters16 {
		return 2
	}
	return 4
}

// fusedCopies returns the bytes of the adapters' 16-bit copies, which a function keeps.
func fusedCopies(shape *Shape, adapters ...*Adapter) int64 {
	if shape.Adapters16 {
		return 0 // A.to(dtype) returns A
	}
	var total int64
	for _, adapter := range adapters {
		total += 2 * adapter.Weights()
	}
	return total
}
