package replay

// Other is a layer with followed linear layers; package ops's rules give the rest.
type Other struct {
	Linears []*Linear // in order; the last one makes the output
	Width   int64     // of the first ones' input
	Saved   []int64   // sizes of tensors that are kept in addition to the linear layers' inputs
	Work    int64     // what passes by in backward
}

func (op *Other) forward(step *Step, layer int, x *Tensor) (*Tensor, back) {
	step.Enter(layer, "", false)
	last := len(op.Linears) - 1
	var backs []back
	var y *Tensor
	retained, variables := make([]*Tensor, 0, len(op.Saved)), []*Tensor(nil)
	for k, linear := range op.Linears {
		read := x.Keep()
		if k == last || linear.In != op.Width {
			step.Drop(read)
			read = step.New(linear.In * step.Tokens * step.Element)
		}
		if k == last {
			step.Drop(x)
			for _, size := range op.Saved {
				tensor := step.New(size)
				retained, variables = append(retained, step.save(tensor)), append(variables, tensor)
			}
		}
		out, after := step.linear(linear, layer, read, k == last && step.recomputed)
		step.Drop(read)
		backs = append(backs, after)
		if k < last {
			variables = append(variables, out)
		} else {
			y = out
		}
	}
	step.Drop(variables...)
	step.Leave(layer, "", false)
	return y, func(grad *Tensor) *Tensor { return op.backward(step, layer, grad, backs, retained) }
}

func (op *Other) backward(step *Step, layer int, grad *Tensor, backs []back, retained []*Tensor) *Tensor {
	step.Enter(layer, "", true)
	defer step.Leave(layer, "", true)
	last := len(op.Linears) - 1
	inner := backs[last](grad)
	step.through(op.Work)
	step.Drop(inner)
	step.Drop(retained...)
	if last == 0 {
		return step.New(op.Width * step.Tokens * step.Element)
	}
	var in *Tensor
	for k := last - 1; k >= 0; k-- {
		linear := op.Linears[k]
		more := backs[k](step.New(linear.Out * step.Tokens * step.Element))
		switch {
		case linear.In != op.Width:
			step.Drop(more)
		case in == nil:
			in = more
		default:
			in = step.both(in, more)
		}
	}
	return in
}

// add is x + made, with norms and dropout; its backward gives both gradients. It may end a rerun
// block.
func (step *Step) add(half *Half, made, x *Tensor, ends bool) (*Tensor, func(grad *Tensor) (residual, body *Tensor)) {
	var mask *Tensor
	var afterBack back
	if half.Dropout && made != nil && !step.infers {
		dropped := step.New(step.stream())
		mask = step.New(step.Width * step.Tokens)
		step.Drop(made)
		made = dropped
		if !step.saving {
			step.Drop(mask)
			mask = nil
		}
	}
	if half.After != nil && !half.Sum {
		step.ends = ends
		made, afterBack = half.After.forward(step, half.AfterIndex, made)
		step.ends = false
	}
	var y *Tensor
	if made != nil {
		y = step.New(step.stream())
	}
	if half.Sum { // the body's result is a variable until then (modeling_bert.py, BertOutput)
		y, afterBack = half.After.forward(step, half.AfterIndex, y)
	}
	step.Drop(made, x)
	return y, func(grad *Tensor) (residual, body *Tensor) {
		if half.Sum {
			grad = afterBack(grad)
		}
		residual, body = grad.Keep(), grad
		if half.After != nil && !half.Sum {
			body = afterBack(body)
		}
		if mask != nil {
			undropped := step.New(step.stream())
			step.Drop(body, mask)
			body = undropped
		}
		return residual, body
	}
}

func (op *Embedding) width(step *Step) int64 {
	if op.Width > 0 {
		return op.Width
	}
	return step.Width
}

func (op *Embedding) enriched() bool { return len(op.More) > 0 || op.Norm != nil || op.Map != nil }

// enrich adds rows of other tables, and normalises the sum. Its backward is kept.
func (op *Embedding) enrich(step *Step, x *Tensor) (out, inputs *Tensor) {
	size := op.width(step) * step.Tokens * step.Element
	inputs = x.Keep()
	for range op.More {
		rows, sum := step.New(size), step.New(size)
		step.Drop(rows, x)
		x = sum
	}
	if op.Norm != nil {
		x, step.normBack = op.Norm.forward(step, op.Index, x)
	}
	if op.Dropout && !step.infers {
		dropped, mask := step.New(size), step.New(size/step.Element)
		step.Drop(x)
		x, step.mask = dropped, mask
	}
	if op.Map != nil {
		read := x
		x, step.mapBack = step.linear(op.Map, op.Index, read, false)
		step.Drop(read)
	}
	return x, inputs
}

// tablesBack are the dense gradients of the other tables.
func (op *Embedding) tablesBack(step *Step) {
	for _, weight := range op.More {
		if weight.Trained {
			step.made(weight, step.New(weight.Numel*step.Element))
		}
	}
}

// enrichedBack goes back to the rows' gradient.
func (op *Embedding) enrichedBack(step *Step, grad *Tensor) *Tensor {
	if step.mapBack != nil {
		grad = step.mapBack(grad)
	}
	if step.mask != nil && grad != nil {
		undropped := step.New(op.width(step) * step.Tokens * step.Element)
		step.Drop(grad)
		grad = undropped
	}
	step.Drop(step.mask)
	if step.normBack != nil && grad != nil {
		grad = step.normBack(grad)
	}
	return grad
}

// transform is what comes before the head's projection.
func (op *Head) transform(step *Step, layer int, x *Tensor) (*Tensor, back) {
	if op.Dense == nil {
		return x, func(grad *Tensor) *Tensor { return grad }
	}
	made, denseBack := op.Dense.activated(step, layer, x)
	step.Drop(x)
	normed, normBack := op.DenseNorm.forward(step, layer, made)
	return normed, func(grad *Tensor) *Tensor { return denseBack(normBack(grad)) }
}

// activated is the first linear layer of a network and its activation.
func (op *MLP) activated(step *Step, layer int, x *Tensor) (*Tensor, back) {
	size := op.Hidden * step.Tokens * step.Element
	gate, gateBack := step.linear(op.Gate, layer, x, false)
	retained, act := op.activate(step, size)
	retained = append(retained, step.save(gate))
	step.Drop(gate)
	return act, func(grad *Tensor) *Tensor {
		gateGrad := step.New(size)
		step.Drop(grad)
		step.Drop(retained...)
		return gateBack(gateGrad)
	}
}

// steps are the cap or the scale of logits.
func (op *Head) steps(step *Step, logits *Tensor) (*Tensor, back) {
	size := op.Vocab * step.Logits * step.Element
	retained := make([]*Tensor, len(op.Steps))
	for k, reads := range op.Steps {
		next := step.New(size)
		step.Drop(logits)
		if logits = next; reads {
			retained[k] = step.save(logits)
		}
	}
	return logits, func(grad *Tensor) *Tensor {
		for k := len(op.Steps) - 1; k >= 0; k-- {
			next := step.New(size)
			step.Drop(grad, retained[k])
			grad = next
		}
		return grad
	}
}
