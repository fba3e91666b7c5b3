package ops

import (
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// head is the projection to the vocabulary, and the loss.
type head struct {
	plain
	modelgraph.Head
}

func (op head) unaligned() bool { return (op.Vocab|op.Dim)%8 != 0 }

// cost follows loss_utils.py ForCausalLMLoss: logits, their fp32 copy, and log-softmax (kept for
// backward). Backward makes the gradients of the negative log-likelihood and of log-softmax, both
// dense fp32.
func (op head) cost(shape *Shape) Cost {
	positions := shape.Logits
	if op.Pooled {
		positions = shape.Batch
	}
	element := shape.elementBytes()
	nV := positions * op.Vocab
	in := op.Dim * positions
	cost := Cost{Known: true, Output: element * nV, FLOPs: 2 * float64(in) * float64(op.Vocab)}
	if op.FP32 {
		cost.Output = 4 * nV
	}
	if !shape.Train {
		cost.Memory.Forward = op.inferring(element, nV, in, shape.StackOutput)
		return cost
	}
	cost.Memory.Loss = true
	switch { // classifiers use the eager loss, on their few logits
	case shape.Compiled && shape.eager(op) && !op.Pooled:
		cost.compiledLoss(op, shape, nV, in)
	case shape.eager(op):
		cost.eagerLoss(op, shape, nV, in)
	case shape.chunked(Torchtune):
		cost.tuneLoss(op, shape)
	case shape.chunked(Torchtitan):
		cost.titanLoss(op, shape)
	case shape.Loss == value.LossChunked:
		cost.chunkedLoss(op, shape)
	case shape.Loss == value.LossTiled:
		cost.tiledLoss(op, shape)
	default:
		cost.fusedLoss(op, shape)
	}
	return cost
}

// inferring returns the peak bytes of a forward without a loss, for nV logits of in input elements.
func (op head) inferring(element, nV, in, other int64) int64 {
	bytes := element*(nV+in) + other // encoder_last_hidden_state (modeling_t5.py, modeling_bart.py)
	if op.Body > 0 {
		bytes += element * op.Body * nV / max(1, op.Vocab)
	} else if op.OwnType && other == 0 { // also the body's output (modeling_bert.py: sequence_output)
		bytes += element * in
	}
	if op.FP32 && element < 4 {
		bytes += 4 * nV
	}
	if op.SoftCap || op.Scaled { // logits / cap, tanh and × cap each make a new tensor
		bytes += element * nV
	}
	return bytes
}

// eagerLoss adds ForCausalLMLoss on all logits, nV elements from in input elements.
func (cost *Cost) eagerLoss(op head, shape *Shape, nV, in int64) {
	element, each := shape.elementBytes(), op.lossBytes(shape)
	cost.Memory.Saved = each*nV + 8*in/max(1, op.Dim) + shape.plainCasts(1, op.Dim, op.Dim*op.Vocab)
	if shape.HeadAlone && !MixedPrecision(shape.Precision) {
		// The weight's gradient needs the input. If the norm is on another device, it is the hook's
		// copy.
		cost.Memory.Saved += element * in
	}
	if op.SoftCap {
		cost.Memory.Saved += element * nV // tanh's output
	}
	cost.Memory.Forward = cost.Memory.Saved + element*nV
	if element < each {
		cost.Memory.Forward += each * nV // logits.float()
	}
	if op.FP32 {
		cost.Memory.Forward -= element * nV // the logits before
	}
	if MixedPrecision(shape.Precision) {
		cost.Memory.Forward += shape.streamBytes() * in // the norm's output is a variable of the model's forward
	}
	if shape.Modules != "" {
		cost.Memory.LossForward, cost.Memory.Forward = cost.Memory.Forward, element*(nV+in)
	}
	// The logits' gradient, the input's, and the weight's.
	grads, sums := shape.NewGrads+shape.SecondGrads, int64(0)
	if grads > shape.weightBytes()*op.Dim*op.Vocab && !op.Pooled {
		sums = ReduceBuffer(nV/max(1, op.Vocab), op.Vocab) // the bias's gradient
	}
	cost.lossParts(2*each*nV, backwardPoint{element*nV + shape.streamBytes()*in - each*nV + sums, grads, grads})
	if shape.Shared {
		cost.sharedLoss(shape, nV, in)
	}
}

// lossBytes returns the bytes per element of log-softmax. Autocast runs it in fp32
// (autocast_mode.h: cross_entropy_loss in AT_FORALL_FP32).
func (op head) lossBytes(shape *Shape) int64 {
	if op.OwnType && !MixedPrecision(shape.Precision) {
		return shape.elementBytes()
	}
	return 4
}

// sharedLoss adds the memory of a loss over a sharded vocabulary. In forward, _log_softmax has the
// logits minus their maximum, and their exponentials. If one kernel computes the result from the
// logits, the result comes after them. In backward, _nll_loss_and_log_softmax_backward has the
// likelihood's gradient, the exponentials of log-softmax and their sum, then its product. The
// input's gradient is a sum over the GPUs. Source: torch 2.11, distributed/tensor/parallel/loss.py,
// loss_parallel.
func (cost *Cost) sharedLoss(shape *Shape, nV, in int64) {
	cost.Memory.Forward += 4 * nV
	if shape.Modules != "" { // the same steps (torchtitan 0.3, components/loss.py, _LossParallelCrossEntropy)
		cost.Memory.LossForward += 4 * nV
		cost.Memory.LossBackward = 12 * nV
	}
	cost.peak(
		backwardPoint{12 * nV, 0, 0},
		backwardPoint{2*shape.streamBytes()*in - 4*nV, shape.NewGrads + shape.SecondGrads, shape.NewGrads + shape.SecondGrads},
	)
}

// eager reports that the loss uses all logits at once: by choice for a language model, always for a
// classifier.
func (shape *Shape) eager(op head) bool {
	return op.Pooled || shape.Loss == "" || shape.Loss == value.LossEager
}

// freeze keeps the loss's tensors, but no input.
func (op head) freeze(cost *Cost, shape *Shape) {
	positions := shape.Logits
	if op.Pooled {
		positions = shape.Batch
	}
	nV, in := positions*op.Vocab, op.Dim*positions
	eager := shape.eager(op)
	if eager && shape.HeadAlone && !MixedPrecision(shape.Precision) && !shape.LinearInputs {
		cost.Memory.Saved -= shape.elementBytes() * in // in forward it is a variable of the model
	}
	if shape.Compiled && eager && !op.Pooled {
		return
	}
	cost.Memory.Saved += shape.adapterSaved(false)
	cost.Memory.Forward += shape.adapterSaved(false) + shape.work()
	if shape.Loss == value.LossTiled && !eager {
		cost.tiledLoss(op, shape) // its backward has the same tiles
		return
	}
	if shape.chunked(Torchtune) {
		cost.tuneBackward(op, shape)
		return
	}
	if !eager { // forward already made the input's gradient
		cost.peak(backwardPoint{0, shape.NewGrads, shape.NewGrads})
		return
	}
	each := op.lossBytes(shape)
	cost.lossParts(2*each*nV, backwardPoint{shape.elementBytes()*nV + shape.streamBytes()*in - each*nV, shape.NewGrads, shape.NewGrads})
}

// lossParts sets the backward of the loss, and the next backward step, from the logits' gradient
// on.
func (cost *Cost) lossParts(loss int64, head backwardPoint) {
	cost.peak(backwardPoint{loss, 0, 0}, head)
	cost.Memory.LossBackward, cost.Memory.HeadBackward, cost.Memory.HeadGrads = loss, head.activations+head.grads, head.grads
}

// traffic returns the traffic of the loss (loss_utils.py ForCausalLMLoss). The forward casts logits
// to fp32 and computes log-softmax. SoftMax.cu reads each row for its maximum, its sum and its
// output. The backward fills in the gradient of the likelihood. Then it computes log-softmax's sum
// and gradient, and casts the result back.
func (op head) traffic(shape *Shape) (forward, backward moved) {
	logits := float64(shape.Logits) * float64(op.Vocab)
	if op.Pooled {
		logits = float64(shape.Batch) * float64(op.Vocab)
	}
	cast := 0.
	if shape.elementBytes() == 2 {
		cast = 2 + 4
	}
	if op.SoftCap {
		forward.flat, backward.flat = 6*float64(shape.elementBytes())*logits, 8*float64(shape.elementBytes())*logits
	}
	if !shape.Train {
		return forward, moved{}
	}
	return forward.add((3*4+4)*logits, cast*logits), backward.add((4+4+8+4+cast)*logits, 0)
}

func (head) kernels(_ *Shape, casts float64) (forward, backward float64) {
	return 1 + casts + 5, 2 + casts + 5
}

func (op head) bound(*Shape) bound {
	return bound{width: float64(op.Dim) + float64(op.Vocab), matrix: float64(op.Dim) * float64(op.Vocab)}
}

// reducedInForward reports that the head's gradient is reduced before the model's backward.
func reducedInForward(shape *Shape, op modelgraph.Op) bool {
	_, last := op.(modelgraph.Head)
	return last && shape.Train && shape.chunked(Torchtitan)
}
