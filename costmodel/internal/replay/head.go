package replay

// Embedding is the table that tokens are looked up in.
type Embedding struct {
	Index  int
	Vocab  int64
	Weight *Weight
	Leaves bool // another device reads its output
	Scaled bool // its output is multiplied (modeling_gemma.py, GemmaModel.forward)
	// Width is the table's width if it is not the stream's; Map converts it (modeling_albert.py,
	// embedding_hidden_mapping_in).
	Width int64
	Map   *Linear
	// More are tables of positions and of types, to be added; Norm normalises the sum.
	More    []*Weight
	Norm    *Norm
	Dropout bool
}

// Head is the projection to the vocabulary and the loss; its weight may be the embedding's.
type Head struct {
	Vocab  int64
	Linear *Linear
	// Dense and DenseNorm come before (modeling_bert.py, BertPredictionHeadTransform).
	Dense     *MLP
	DenseNorm *Norm
	OwnType   bool // the loss reads the logits unchanged
	// Steps are the tensors of a cap or a scale of the logits, in order: true if backward reads it.
	Steps []bool
}

// forward is the logits, and loss_utils.py ForCausalLMLoss: their fp32 copy,
// labels shifted, log-softmax. The caller drops the logits.
func (op *Head) forward(step *Step, layer int, x *Tensor) (*Tensor, back) {
	step.Enter(layer, "", false)
	retained := *op.Linear
	retained.Module = ""
	x, denseBack := op.transform(step, layer, x)
	count := op.Vocab * step.Logits
	logits, logitsBack := step.projectHead(&retained, x)
	step.Drop(x)
	step.Leave(layer, "", false)
	logits, stepsBack := op.steps(step, logits)
	if step.infers {
		if step.KeepsLogits {
			step.Outputs = append(step.Outputs, logits)
		} else {
			step.Drop(logits)
		}
		return nil, nil
	}
	each := int64(4)
	if op.OwnType {
		each = step.Element
	}
	wide := logits.Keep()
	if step.Element < each {
		step.Drop(wide)
		wide = step.New(each * count)
	}
	labels := step.New(8 * (step.Tokens + step.Batch)) // padded by one a sequence
	shifted := step.New(8 * step.Tokens)
	step.Drop(labels)
	logs := step.New(each * count)
	loss, weight := step.New(4), step.New(4)
	step.Drop(wide)
	return loss, func(grad *Tensor) *Tensor {
		if step.KeepsLogits { // by the caller
			step.Outputs = append(step.Outputs, logits)
		} else {
			step.Drop(logits) // held by the model's output until it returned
		}
		step.Backward()
		chosen := step.New(each * count)
		step.Drop(grad, weight, shifted)
		soft := step.New(each * count)
		step.Drop(chosen, logs)
		narrow := soft
		if step.Element < each {
			narrow = step.New(count * step.Element)
			step.Drop(soft)
		}
		step.Enter(layer, "", true)
		defer step.Leave(layer, "", true)
		return denseBack(logitsBack(stepsBack(narrow)))
	}
}

// projectHead is the head's product. A tied weight's gradient waits for the embedding's
// (torch/csrc/autograd/input_buffer.h).
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
		if op.Bias != nil && op.Bias.Trained {
			bias := step.New(op.Bias.Numel * step.Element)
			step.through(op.Parts)
			step.made(op.Bias, bias)
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
