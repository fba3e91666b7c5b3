package costmodel

import "github.com/devmap-dev/devmap/costmodel/internal/value"

// Table is the cost of every unit of a model under one workload.
type Table struct {
	Workload Workload
	// Units are in the graph's unit order, which is the order they run in.
	Units []Unit
	// Step is the work of all units in devmap's engine: forwards and backwards of a micro-batch, without
	// recomputation. StepUpdate is their optimizer's bytes.
	Step       Pass
	StepUpdate float64
	// SampleTokens are the tokens of an image or a sound if the model reads no text: of its longest
	// stream, or of a decoder. 0: it reads text.
	SampleTokens int64
	// Workspaces is the number of library workspaces that a device holds
	// while it runs the model: one per thread that calls the library.
	Workspaces int64
	// BiasWorkspace is cuBLASLt's, which products with a bias take in forward
	// (CUDABlas.cpp, _parseChosenWorkspaceSize of cuBLASLt).
	BiasWorkspace int64
	// OutputBytes is the size of the model's outputs, which the engine copies
	// to the device that the input is on (InputDevice).
	OutputBytes int64
	InputDevice int
	// LossBytes is the most that the caller has there in addition, for its loss and the loss's gradient.
	LossBytes int64
	// OutputsDropped: the caller keeps the loss alone, so that the outputs are gone before backward
	// begins. By default it keeps them to the end of the step.
	OutputsDropped bool
	// Buckets are DDP's buffers of gradients, on every GPU.
	Buckets int64
	// SecondBuckets is what only some GPUs hold: DDP's first buckets.
	SecondBuckets int64
	// LastGradients: the last step's gradients are alive until backward.
	LastGradients bool
	// ZeroesGradients: gradients are set to zero after a step, and stay.
	ZeroesGradients bool
	// Comm is a GPU's memory outside the engine's allocator. BodySlack and HeadSlack are the least
	// and most that the pool reserves above a peak, as fractions of the peak. HeadSlack is for GPUs
	// with the loss or the model's outputs.
	Comm                 Comm
	BodySlack, HeadSlack [2]float64
	// Groups are parameters that are sharded and gathered for use
	// (fsdp, hsdp); units then hold one rank's part.
	Groups []Group
	// Flat: the groups are FSDP1's. Prefetches: backward gathers the next early (BACKWARD_PRE).
	Flat, Prefetches bool
	// Prepared are the whole parameters that exist in addition to their shards while the model is
	// sharded. If it was built on the GPU, these are all. If a state dict is broadcast, it is one at a
	// time. 0 means that this is not modelled.
	Prepared int64
	// Reference is a frozen model that training runs in addition.
	Reference value.Reference
	// Generation are the units while they generate the step's training data; GenerationCopies are
	// autocast's copies of their weights.
	Generation       []Unit
	GenerationCopies int64
	// Evaluation is a training program's forward between steps, nil: none. Retained are the logits
	// that exist during it, and at its end.
	Evaluation *Table
	Retained   [2]int64
	// Saving are the bytes of a sharded model that a checkpoint gathers at once.
	Saving int64
	// Least is a step of the model as one compiled graph, nil: not compiled. The peak is between
	// Least's and the table's own.
	Least *Table
	// Rotary are the cosines and sines that a pipeline's stage makes for each micro-batch and all
	// its blocks share (torch 2.11, distributed/pipelining/stage.py).
	Rotary int64
	// Band is the error of a peak, as a part of it, if the family's modelling code is not reviewed;
	// 0: as exact as the operations.
	Band float64
	// AtLeast: peaks are lower bounds, as activations of some layers are not known.
	AtLeast bool
	// Pool is the part of a device's memory that the engine takes at its start; 0: it grows on demand.
	Pool float64
	// Marks returns, for each micro-batch of the first steps, the least and most bytes at the
	// highest that the allocator has reserved. The GPU holds these units (nil: all), with input the
	// caller's tensors too. Nil: tensors are not followed one by one.
	Marks func(units []int, input bool) [][2]int64
	// Followed is the least and most excess over these reserved bytes, as parts of the peak.
	Followed [2]float64
	// Usual are the costs of the usual micro-batch; nil: all micro-batches have one size.
	Usual *Table
	// Part are some units, ascending, as they cost on a device that has no others; without
	// copies it never costs more with fewer. nil: they cost what Units say.
	Part func(owned []int, copies bool) []Unit
	// Additive: a device's peak is the sum over its units (no activations).
	Additive bool
	// Stages are the tables of a pipeline's stages in order, if their degrees or recomputation
	// differ; nil: all have this table.
	Stages []*Table
	// HostBytes is the host memory of DeepSpeed's offload for all GPUs together; 0 without.
	HostBytes int64
	// Warnings name what the figures leave out.
	Warnings []Message
}
