package replay

// Weight is a parameter.
type Weight struct {
	Numel   int64
	Trained bool
	// Grad is the tensor of its gradient while it has one.
	Grad *Tensor
}

// Linear is a linear layer, with its adapter if Rank is not 0.
type Linear struct {
	Module       string // its path below the layer
	In, Out      int64
	Weight, Bias *Weight
	Parts        int64 // workspace of the bias's gradient's sum (Reduce.cuh)
	Rank         int64
	Down, Up     *Weight // the adapter's A and B
}

// Layer is one of the layers that a model runs.
type Layer interface {
	// forward takes a reference to its input and returns one to its output, with its backward,
	// which does the same with gradients; nil if it keeps nothing for backward.
	forward(step *Step, layer int, in *Tensor) (*Tensor, back)
}

// back is the backward of a tensor's operation: from the tensor's gradient to the input's.
type back func(grad *Tensor) *Tensor

// Block is layers with outputs added to their inputs, half by half: normalisation, then attention
// or the feed-forward network. A block may have one half.
type Block struct {
	Halves [2]Half
	// Arrives: its input comes from another device, and its gradient goes back there.
	// Leaves: another device reads its output.
	Arrives, Leaves bool
}

// Half is a block's normalisation and what reads it.
type Half struct {
	Norm, Body           Layer // Norm is nil if the body reads the stream itself
	NormIndex, BodyIndex int   // their places in the graph
	// After normalises the body's result (modeling_gemma2.py), or with Sum its sum with the stream.
	After      *Norm
	AfterIndex int
	Sum        bool
	Dropout    bool // of the body's result
}

// Model is a decoder.
type Model struct {
	Tokens, Batch, Length int64
	Width                 int64 // of the residual stream
	Logits                int64 // positions that the head projects
	Element               int64 // bytes of an activation
	Adapter               int64 // bytes of an adapter's element
	Embedding             Embedding
	Rotary                int64 // elements of the cosines and of the sines
	Copies                bool  // each block gets copies of both, from another device
	Sent                  bool  // the rotary's input comes from another device
	Blocks                []Block
	Norm                  Norm
	NormIndex             int
	Head                  Head
	HeadIndex             int
	EndArrives            bool // the last normalisation's input, or the head's, comes from another device
	Recompute             bool
	// KeepsInputs: linear layers keep their inputs for backward, frozen ones too. InputFirst: they
	// make their input's gradient before their weight's (DeepSpeed's zero/linear.py).
	KeepsInputs, InputFirst bool
	// KeepsLogits: the caller holds the logits ([Run.Outputs]). Copied are bytes
	// of outputs that come from another device.
	KeepsLogits bool
	Copied      int64
	// Passes: the caller drops the outputs at once.
	Passes bool
	// Caches: a forward alone leaves keys and values ([Model.Infer]).
	Caches bool
	// Early: tensors end with their last use, not with the call that has them in a variable.
	Early bool
	// NewSums: the sum of a tied weight's gradients is a tensor of its own.
	NewSums bool
}

// Hooks are a strategy's actions while a step runs.
type Hooks interface {
	// Enter and Leave surround a module of a layer, by its path below it, ""
	// for the layer itself, in forward or in backward.
	Enter(layer int, module string, backward bool)
	Leave(layer int, module string, backward bool)
	// Gradient is called with each gradient that is complete; weight.Grad
	// is it. A strategy that takes it leaves nil.
	Gradient(weight *Weight)
	// Block surrounds a block, by its index.
	Block(index int, ends, backward bool)
	// Backward is called when the loss has its gradient.
	Backward()
}

// Step is one forward and backward.
type Step struct {
	*Run
	*Model
	Hooks
	saving     bool // forward keeps what backward needs
	infers     bool // there is no backward
	recomputed bool // it runs again, as far as something is kept
	ends       bool // the norm at hand is the last of a block that runs again
	grads      bool // the activations at hand require a gradient
	positions  *Tensor
	sines      *Tensor
	tied       *Tensor // a gradient that waits for the embedding's
	input      *Tensor // of the block whose backward runs, if it is recomputed
	sent       *Tensor // the embedding's message to a recomputed block
	scaled     *Tensor // gradients that were made before a block ran again: an adapter's
	base       *Tensor // and its linear layer's
	first      bool    // the block's first normalisation is at its backward
	// of the embeddings' norm, projection and dropout
	normBack, mapBack back
	mask              *Tensor
}

// save is a hold for backward, if it is kept.
func (step *Step) save(tensor *Tensor) *Tensor {
	if !step.saving {
		return nil
	}
	return tensor.Keep()
}

// stream is the size of the residual stream.
func (step *Step) stream() int64 { return step.Width * step.Tokens * step.Element }

// made hands a gradient on, which is added to one that was there
// (torch/csrc/autograd/functions/accumulate_grad.h: in place).
func (step *Step) made(weight *Weight, grad *Tensor) {
	if weight.Grad != nil {
		step.Drop(grad)
	} else {
		weight.Grad = grad
	}
	step.Gradient(weight)
}
