package forward

// tensor is a storage with its type, and with the node that its gradient goes to; nil: it needs none.
type tensor struct {
	*value
	elements, width int64
	from            *node
}

// slope is a gradient, or a part of one.
type slope struct {
	*value
	size int64
	// viewed: a view, with a base that ADInplaceOrView keeps, so that nothing is added to it in
	// place (torch/csrc/autograd/input_buffer.cpp, can_accumulate_inplace).
	viewed bool
	// apart: its rows lie apart, and kernels that want them together copy it.
	apart bool
}

// node is an operation of autograd's graph: its saved values, and its backward, from the gradient
// of its result to those of its inputs.
type node struct {
	inputs []*node
	back   func(grad slope) []slope
	grad   slope
	leaf   bool // an adapter's matrix
	pieces bool // its results' gradients wait in its backward
	saved  []*value
	saves  int
	frame  *frame
}

// frame is a block under torch.utils.checkpoint without reentry. It keeps its inputs, and reruns
// when backward asks for the first tensor, up to the last kept one (checkpoint.py:
// _checkpoint_hook, early_stop).
type frame struct {
	nodes      []*node
	inputs     []*value
	again      func() []*tensor
	next, left int
	last       int // the last node that keeps something
	ran        bool
}

// training is a forward that autograd follows, and its backward.
type training struct {
	*tape
	rank    int64 // of adapters
	adapter int64 // bytes of their elements
	norms   int64 // bytes of an element that norms read under autocast; 0: unchanged
	adapts  func(name string) bool
	nodes   []*node
	grads   []*value // of adapters
	frame   *frame
	replays bool
	// accumulated: the adapters have gradients, which more are added to.
	accumulated bool
	half        bool      // fp16, whose streams are clipped
	angles      [2]*value // cosines and sines, which every block keeps
	cached      []*value  // adapters' matrices that autocast has cast
}

func (run *training) fresh(elements, width int64, from *node) *tensor {
	return &tensor{value: run.alloc(elements * width), elements: elements, width: width, from: from}
}

// view is another tensor of a storage.
func (from *tensor) view(elements int64, node *node) *tensor {
	return &tensor{value: from.hold(), elements: elements, width: from.width, from: node}
}

// same is another name of a tensor.
func (from *tensor) same() *tensor { return from.view(from.elements, from.from) }

// free takes names away.
func (run *training) free(tensors ...*tensor) {
	for _, gone := range tensors {
		if gone != nil {
			run.drop(gone.value)
		}
	}
}

// node begins an operation, which saves some inputs; nil if no input needs a gradient.
func (run *training) node(inputs []*tensor, saved ...*value) *node {
	needed := false
	for _, input := range inputs {
		needed = needed || input.from != nil
	}
	switch frame := run.frame; {
	case !needed:
		return nil
	case run.replays:
		made := frame.nodes[frame.next]
		made.hold(saved)
		run.stopped = run.stopped || frame.next == frame.last
		frame.next++
		return made
	}
	made := &node{frame: run.frame, saves: len(saved)}
	for _, input := range inputs {
		made.inputs = append(made.inputs, input.from)
	}
	run.nodes = append(run.nodes, made)
	if frame := run.frame; frame != nil {
		if len(saved) > 0 {
			frame.last = len(frame.nodes)
			frame.left++
		}
		frame.nodes = append(frame.nodes, made)
		return made
	}
	made.hold(saved)
	return made
}

func (made *node) hold(values []*value) {
	for _, saved := range values {
		made.saved = append(made.saved, saved.hold())
	}
}

// keeps is what an operation makes for its backward, in addition to its result.
func (run *training) keeps(made *node, values ...*value) {
	if made != nil && (run.frame == nil || run.replays) {
		made.hold(values)
	}
	run.drop(values...)
}

// checkpoint runs a block, which keeps its inputs alone.
func (run *training) checkpoint(on bool, inputs []*tensor, block func() []*tensor) []*tensor {
	if !on {
		return block()
	}
	made := &frame{again: block}
	for _, input := range inputs {
		made.inputs = append(made.inputs, input.hold())
	}
	run.frame = made
	results := block()
	run.frame = nil
	return results
}

// again runs a checkpointed block's forward.
func (run *training) again(made *frame) {
	made.ran = true
	run.frame, run.replays = made, true
	run.free(made.again()...)
	run.frame, run.replays, run.stopped = nil, false, false
}

// backward goes through the nodes from the last to the first, which is the order
// of their numbers (torch/csrc/autograd/engine.cpp: CompareNodeTaskTime).
func (run *training) backward(last *tensor, grad slope) {
	run.sum(last.from, grad)
	for i := len(run.nodes) - 1; i >= 0; i-- {
		made := run.nodes[i]
		if made.grad.value == nil && !made.pieces {
			continue
		}
		if made.frame != nil && !made.frame.ran && made.saves > 0 {
			run.again(made.frame)
		}
		grads := made.back(made.grad)
		run.drop(made.grad.value)
		run.drop(made.saved...)
		made.grad, made.saved = slope{}, nil
		for j, input := range made.inputs {
			if input != nil && grads != nil {
				run.sum(input, grads[j])
			}
		}
		if frame := made.frame; frame != nil && made.saves > 0 {
			frame.left--
			if frame.left == 0 {
				run.drop(frame.inputs...)
			}
		}
	}
	run.nodes = nil
}

// sum sets or adds a node's gradient: in place if nothing else holds it.
func (run *training) sum(to *node, more slope) {
	switch {
	case to.leaf && run.accumulated:
		run.drop(more.value)
	case to.leaf:
		run.grads = append(run.grads, more.value)
	case to.grad.value == nil:
		to.grad = more
	case to.grad.references == 1 && !to.grad.viewed:
		run.drop(more.value)
	default:
		total := slope{value: run.alloc(max(more.size, to.grad.size)), size: max(more.size, to.grad.size)}
		run.drop(to.grad.value, more.value)
		to.grad = total
	}
}

// slope is a new gradient.
func (run *training) slope(bytes int64) slope { return slope{value: run.alloc(bytes), size: bytes} }

// passed is the same gradient, for another node.
func (grad slope) passed() slope {
	grad.hold()
	return grad
}
