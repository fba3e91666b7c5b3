package layers

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// Rules are what an engine does with tensors that the ops do not say.
type Rules struct {
	// RotaryCopies: every block gets its own copy of the rotary's cosines and sines, else all share one.
	RotaryCopies bool
	// Compute is the precision that the ops see; weights between steps have the workload's.
	Compute costmodel.Precision
	// Masters: the optimizer has weights of the workload's precision to itself,
	// and the ops read others, in the precision of Compute.
	Masters bool
	// Cut: parameters, gradients and states are cut over ShardDegree GPUs, and
	// gradients are reduced in every micro-batch.
	Cut bool
	// GradsStay: gradients stay from one micro-batch to the next, or from one step to the next.
	GradsPersist bool
	// LinearInputs: linear layers keep their inputs, frozen ones too.
	LinearInputs bool
	// Untied: every user of a tied parameter has a copy of its own.
	Untied bool
	// Padding: an MLP's optimizer tensors are rounded layer by layer, else by the engine or never.
	Padding bool
	// InOrder: a GPU's parameters are made one after another, adapters last.
	InOrder bool
	// StatesApart: the optimizer's states lie in no block that a step has freed.
	StatesApart bool
	// Rests are the allocator's rounding of all tensors of a GPU that trains the whole model, at a
	// step's peak and after it; nil, or not ok: not followed.
	Rests func(*Model) (rests [2]int64, ok bool)
	// FrozenAsStored: frozen parameters keep their stored type.
	FrozenAsStored bool
	// ReduceAsComputed: gradients are reduced in the type of compute.
	ReduceAsComputed bool
	// AutocastAdapters: adapters alone run under autocast's casts, as the base has 16 bits.
	AutocastAdapters bool
	// FusedAdapters: axolotl's functions run adapters of text decoders.
	FusedAdapters bool
	// Megatron: Megatron-Core's layers; selective recomputation only of the attention kernel's
	// call.
	Megatron bool
	// Adapters16: fp32 adapters are gathered in 16 bits.
	Adapters16 bool
	// HeadAsStored: the loss reads a frozen head's weight in its stored type.
	HeadAsStored bool
	// Modules run the model.
	Modules ops.Modules
	// Compiled: the model is one graph of torch.compile. InParts: DDP cuts it at its
	// buckets (torch 2.11, _dynamo/backends/distributed.py, DDPOptimizer).
	Compiled, InParts bool
	// FlatNF4 keeps the statistics of 4-bit weights unquantised.
	FlatNF4 bool
}
