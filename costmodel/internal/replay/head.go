package replay

// Embedding is the table that tokens are looked up in.
type Embedding struct {
	Index  int
	Vocab  int64
	Weight *Weight
	Leaves bool // another device reads its output
	Scaled bool // its output is multiplied (modeling_gemma.py, GemmaModel.forward)
}

// Head is the projection to the vocabulary and the loss; its weight may be the
// embedding's.
type Head struct {
	Vocab  int64
	Linear *Linear
	Caps   bool // tanh(logits / cap) · cap
}

// forward is the logits, and loss_utils.py ForCausalLMLoss: their fp32 copy,
// labels shifted, log-softmax. The caller drops the logits.
func (op *Head) forward(step *Step, layer int, x *Tensor) (*Tensor, back) {
	step.Enter(layer, "", false)
	retained := *op.Linear
	retained.Module = ""
	count := op.Vocab * step.Logits
	logits, logitsBack := step.projectHead(&retained, x)
	step.Drop(x)
	step.Leave(layer, "", false)
	if op.Caps {
		logits, logitsBack = capped(step, logits, count*step.Element, logitsBack)
	}
	if step.infers {
		if step.KeepsLogits {
			step.Outputs = append(step.Outputs, logits)
		} else {
			step.Drop(logits)
		}
		return nil, nil
	}
	wide := logits.Keep()
	if step.Element < 4 {
		step.Drop(wide)
		wide = step.New(4 * count)
	}
	labels := step.New(8 * (step.Tokens + step.Batch)) // padded by one a sequence
	shifted := step.New(8 * step.Tokens)
	step.Drop(labels)
	logs := step.New(4 * count)
	loss, weight := step.New(4), step.New(4)
	step.Drop(wide)
	return loss, func(grad *Tensor) *Tensor {
		if step.KeepsLogits { // by the caller
			step.Outputs = append(step.Outputs, logits)
		} else {
			step.Drop(logits) // held by the model's output until it returned
		}
		step.Backward()
		chosen := step.New(4 * count)
		step.Drop(grad, weight, shifted)
		soft := step.New(4 * count)
		step.Drop(chosen, logs)
		narrow := soft
		if step.Element < 4 {
			narrow = step.New(count * step.Element)
			step.Drop(soft)
		}
		step.Enter(layer, "", true)
		defer step.Leave(layer, "", true)
		return logitsBack(narrow)
	}
}

// capped divides the logits, takes their tanh and multiplies it (modeling_gemma2.py,
// Gemma2ForCausalLM.forward).
func capped(step *Step, logits *Tensor, size int64, before back) (*Tensor, back) {
	divided := step.New(size)
	step.Drop(logits)
	tanh := step.New(size)
	step.Drop(divided)
	retained := step.save(tanh)
	product := step.New(size)
	step.Drop(tanh)
	return product, func(grad *Tensor) *Tensor {
		for _, saved := range []*Tensor{nil, retained, nil} {
			next := step.New(size)
			step.Drop(grad, saved)
			grad = next
		}
		return before(grad)
	}
}

// projectHead is the head's product. The gradient of a weight that is the
// embedding's too waits for that one's (torch/csrc/autograd/input_buffer.h).
func (step *Step) projectHead(op *Linear, x *Tensor) (*Tensor, back) {
	var saved *Tensor
	if op.Weight.Trained || step.KeepsInputs {
		saved = step.save(x)
	}
	logits := step.New(op.Out * step.Logits * step.Element)
	step.product(0)
	return logits, func(grad *Tensor) *Tensor {
		var weight, in *Tensor
		if step.InputFirst {
			in = step.New(op.In * step.Tokens * step.Element)
			step.product(1)
		}
		if op.Weight.Trained {
			weight = step.New(op.Weight.Numel * step.Element)
			step.product(1)
		}
		if !step.InputFirst {
			in = step.New(op.In * step.Tokens * step.Element)
			step.product(1)
		}
		step.Drop(grad, saved)
		switch {
		case weight == nil:
		case op.Weight == step.Embedding.Weight:
			step.tied = weight
		default:
			step.made(op.Weight, weight)
		}
		return in
	}
}
