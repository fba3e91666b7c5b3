package ops

// Adapter is a LoRA adapter on one linear layer of an op: A [Rank, In] and
// B [Out, Rank].
type Adapter struct {
	Module        string // path below the layer's: q_proj
	In, Out, Rank int64
	// Output: the linear layer leads back to the residual stream (o_proj,
	// down_proj). Up: its output is the factor without activation (up_proj).
	Output, Up bool
	// Folded: it is on a mixture's parameter of so many elements. Each forward makes the
	// weight with the product of A and B in it (peft/tuners/lora/layer.py, ParamWrapper:
	// baddbmm). Rank is that of all experts.
	Folded int64
}

// Weights is the number of parameters.
func (adapter *Adapter) Weights() int64 { return adapter.Rank * (adapter.In + adapter.Out) }

// adapters are those whose linear layer reads the op's input, and the one
// that leads back to the residual stream, or nil.
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

// adapterBytes is the size of an element in an adapter's products: autocast runs them
// in 16 bits, and so does a gathered copy of that type.
func (shape *Shape) adapterBytes() int64 {
	if shape.autocasts() || shape.Adapters16 {
		return 2
	}
	return 4
}

// autocasts reports that adapters run on autocast's copies.
func (shape *Shape) autocasts() bool { return MixedPrecision(shape.Precision) || shape.AdapterCasts }

// converts reports that a 16-bit base meets fp32 adapters: x.to(fp32) before,
// result.to(dtype) after (peft/tuners/lora/layer.py, Linear.forward).
func (shape *Shape) converts() bool { return shape.adapterBytes() != shape.elementBytes() }

// quantized16 reports adapters on a quantised base whose stream has 16 bits. PEFT's
// layer leaves the casts to autocast (peft/tuners/lora/bnb.py, Linear4bit.forward),
// which leaves 16 bits as they are.
func quantized16(shape *Shape) bool { return shape.Quantize != "" && shape.AdapterCasts }

// input is the copy of its input that an adapter keeps for A's gradient: fp32
// (_cast_input_dtype) or autocast's. Only fp32 on fp32 reads the base's own
// tensor, and shared says that something else keeps that.
func (adapter *Adapter) input(shape *Shape, shared bool) int64 {
	if shape.AdapterDropout { // what dropout makes of it, and its mask if a gradient goes back
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

// widened reports that A's input is made fp32 before autocast makes it 16 bits
// (_cast_input_dtype): of a base in 16 bits always, of one in fp32 where autocast
// made the input, of a quantised one never.
func (adapter *Adapter) widened(shape *Shape) bool {
	return shape.autocasts() && shape.Quantize == "" && (shape.AdapterCasts || adapter.Output)
}

// copied is what an adapter's forward has in addition to what it keeps: the fp32
// copy of its input, throughout; and what dropout makes of it, until it is cast.
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

// inner is A's output, kept for B's gradient, with autocast's copies of both.
func (adapter *Adapter) inner(shape *Shape) int64 {
	bytes := shape.adapterBytes() * adapter.Rank * shape.Tokens
	if shape.autocasts() && !shape.Adapters16 {
		bytes += 2 * adapter.Weights()
	}
	return bytes
}

// adapterSaved is what the adapters keep for backward. outputShared: the input of the
// linear layer that leads back is kept anyway.
func (shape *Shape) adapterSaved(outputShared bool) int64 {
	inputs, output := shape.adapters()
	return shape.unfusedSaved(inputs, output, outputShared)
}

// unfusedSaved is what adapters keep that PEFT runs one by one.
func (shape *Shape) unfusedSaved(inputs []*Adapter, output *Adapter, outputShared bool) int64 {
	var total int64
	for i, adapter := range inputs {
		total += adapter.input(shape, i > 0 || shape.LinearInputs && shape.InputGrad) + adapter.inner(shape)
	}
	if output != nil {
		total += output.inner(shape)
		// PEFT's layer on a quantised base casts no input under autocast
		// (peft/tuners/lora/bnb.py), and that of this one has 16 bits as it is.
		if !outputShared || shape.Quantize == "" || !shape.autocasts() || shape.AdapterDropout {
			total += output.input(shape, outputShared)
		}
	}
	return total
}

// work is the most that an adapter adds to a forward: its input's copy and
// A's output, B's output and the scaled one.
func (shape *Shape) work() int64 {
	var total int64
	for i := range shape.Adapters {
		total = max(total, shape.Adapters[i].unfusedWork(shape))
	}
	return total
}

// unfusedWork is what one adapter adds to a forward.
func (adapter *Adapter) unfusedWork(shape *Shape) int64 {
	if adapter.Folded > 0 {
		return 0
	}
	copied, dropped := adapter.copied(shape)
	return adapter.input(shape, true) + copied + max(dropped, adapter.inner(shape)+2*shape.adapterBytes()*adapter.Out*shape.Tokens)
}

// gradBytes is the size of an element of an adapter's gradient.
func (shape *Shape) gradBytes() int64 {
	if shape.Adapters16 {
		return 2
	}
	return 4
}

// fusedCopies are the 16-bit copies of the adapters, which a function keeps.
func fusedCopies(shape *Shape, adapters ...*Adapter) int64 {
	if shape.Adapters16 {
		return 0 // A.to(dtype) is A
	}
	var total int64
	for _, adapter := range adapters {
		total += 2 * adapter.Weights()
	}
	return total
}
