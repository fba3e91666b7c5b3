package costmodel

import (
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
)

// Workload is the resolved flags of a plan.
type Workload struct {
	Mode     Mode     `json:"mode"`
	Strategy Strategy `json:"strategy"`
	// Runtime is the engine: accelerate (naive model parallelism), torch (DDP, FSDP2 and
	// torch.distributed.pipelining), lightning, deepspeed, torchtitan, megatron, jax, llama.cpp or devmap.
	// Programs of jax are compiled by XLA, such as OpenPI's. Lightning is torch with PyTorch
	// Lightning's defaults. The project's own engine is devmap.
	Runtime      string `json:"runtime"`
	Batch        int64  `json:"batch"`         // sequences a step, of one data-parallel rank
	MicroBatches int64  `json:"micro_batches"` // equal parts of the batch
	Seq          int64  `json:"seq"`           // tokens a sequence
	TargetSeq    int64  `json:"target_seq"`    // decoder tokens of an encoder–decoder
	NewTokens    int64  `json:"new_tokens"`    // generated after the prompt; 0: one forward
	Images       int64  `json:"images"`        // a sequence; their tokens are part of Seq
	// ImageSize is the side of the images, squares, in pixels; 0: the model's own ([modelgraph.Stream]).
	ImageSize int64 `json:"image_size,omitzero"`
	// MaxPixels bounds a resized image's area, its size if ImageSize is 0; 0: unbounded.
	MaxPixels int64 `json:"max_pixels,omitzero"`
	// ImagesMean is the mean number of images a sequence, Images the most; 0: all have Images.
	ImagesMean float64 `json:"images_mean,omitzero"`

	Serving

	// Packing is how samples fill the rows of a micro-batch: none (a row each,
	// padded to the longest), wrapped, packed or padding-free. Empty is none.
	Packing string `json:"packing,omitzero"`
	// Lengths are the tokens of the samples; its method Read takes "mean,max", or
	// the text of a file. The zero value: all have Seq. Longer ones are cut to Seq.
	Lengths trainer.Lengths `json:"lengths,omitzero"`
	// Rows are the largest and the usual micro-batch, which resolving works out
	// of both; nil: MicroBatches of Seq tokens a sequence.
	Rows *trainer.Batches `json:"rows,omitzero"`
	// Usual asks for the costs of the usual micro-batch, not of the largest.
	Usual bool `json:"-"`
	// LabelTokens are the tokens of a sample that carry labels, a fraction up to 1 or their number.
	// 0 is all. Programs that make logits for labels alone then make fewer.
	LabelTokens float64 `json:"label_tokens,omitzero"`

	Precision Precision `json:"precision"`
	// StoredTypes: tensors keep their stored types; Precision is the type of most.
	StoredTypes bool `json:"stored_types,omitzero"`
	// Dequantized: the GPUs lack arithmetic for the stored weights, which are loaded as bf16.
	Dequantized bool `json:"dequantized,omitzero"`
	// Optimizer is the update rule: adamw, sgd, sgd-momentum, adafactor, muon, adamw-foreach (with
	// temporaries in the step), bitsandbytes' adamw-8bit, paged-adamw-8bit or paged-adamw-32bit, or
	// torchao's adamw-torch-8bit or adamw-torch-4bit.
	Optimizer string `json:"optimizer"`
	// OptimizerInBackward: each parameter is updated in backward, and its gradient dropped.
	OptimizerInBackward bool `json:"optimizer_in_backward,omitzero"`
	// Recompute is what forward drops and backward computes again: none, full,
	// selective, or auto: none or full, chosen for each stage of a pipeline.
	Recompute string `json:"recompute"`
	// OffloadActivations are the blocks whose saved activations wait in host memory from forward to
	// backward: full, auto, or a list such as 0-5,9. Empty: none.
	OffloadActivations string `json:"offload_activations,omitzero"`

	// World is the number of GPUs if each runs the whole model or a pipeline's stage.
	World int64 `json:"world,omitzero"`
	// OneGPU: a device map has one GPU, which holds the whole model.
	OneGPU bool `json:"-"`
	// Schedule and VirtualStages, the runs a device, are a pipeline's.
	Schedule      ScheduleKind `json:"schedule,omitzero"`
	VirtualStages int64        `json:"virtual_stages,omitzero"`
	// DP and TP are the GPUs of a pipeline's stage: DP replicas of it, each of
	// TP GPUs that share every matrix (tensor parallelism). Left out: 1.
	DP Degree `json:"dp,omitzero"`
	TP Degree `json:"tp,omitzero"`
	// CP and EP are Megatron's and torchtitan's: GPUs that share a sequence's tokens, and GPUs of
	// the DP × CP replicas that share a layer's experts. PP is the number of stages. Left out: 1,
	// or what the other degrees leave.
	CP Degree `json:"cp,omitzero"`
	EP Degree `json:"ep,omitzero"`
	PP Degree `json:"pp,omitzero"`
	// SequenceParallel: the GPUs that share matrices share the tokens between them, too.
	SequenceParallel bool `json:"sequence_parallel,omitzero"`
	// ExpertCapacity is the busiest GPU's tokens for its experts, as a multiple of the mean; 0: 1.
	ExpertCapacity float64 `json:"expert_capacity,omitzero"`
	// Uniform: all stages have the same degrees and recomputation.
	Uniform bool `json:"uniform,omitzero"`
	// ShardDegree is the GPUs that share a parameter (zero, fsdp, hsdp, a stage's replicas).
	ShardDegree int64 `json:"shard_degree,omitzero"`
	// MemFraction is the part of a GPU that JAX preallocates; 0 under other engines.
	MemFraction float64 `json:"mem_fraction,omitzero"`

	LoRARank    int64    `json:"lora_rank,omitzero"`    // 0: none
	LoRATargets []string `json:"lora_targets,omitzero"` // module suffixes
	// LoRAPrecision is the type of adapters between steps: fp32, or bf16, which is fp16 if the base
	// is.
	LoRAPrecision string `json:"lora_precision,omitzero"`
	// LoRADropout: adapters drop out some of their input.
	LoRADropout bool `json:"lora_dropout,omitzero"`
	// Quantize is the format of frozen linear weights: nf4 or int8 (bitsandbytes). Empty: unchanged.
	Quantize string `json:"quantize,omitzero"`

	// Float8 is torchao's 8-bit training of the blocks' linear layers: tensorwise, rowwise, or
	// tensorwise-gathered, which gathers weights in 8 bits (FSDP2). Empty: none.
	Float8 string `json:"float8,omitzero"`

	// Loss is the computation of a language model's loss: eager [default], chunked or fused.
	Loss string `json:"loss,omitzero"`
	// Attention is the kernel of attention: sdpa [default], eager or flash.
	Attention string `json:"attention,omitzero"`
	// Kernels are those of Mamba-2's mixers: torch [default] (Transformers' own code), or package
	// (mamba-ssm with causal-conv1d).
	Kernels string `json:"kernels,omitzero"`
	// Liger: Liger's kernels are in the place of the norms, the MLPs, the rotation and
	// the loss of decoders (TrainingArguments.use_liger_kernel).
	Liger bool `json:"liger,omitzero"`
	// Compile: torch.compile makes kernels of the model's forward and backward, which
	// take less than the modules' own, by an amount that is a range here.
	Compile bool `json:"compile,omitzero"`
	// LossOnly: the caller keeps the loss alone, so that the outputs are gone before backward begins.
	LossOnly bool `json:"loss_only,omitzero"`
	// GradientViews: DDP's gradients are views of its buckets.
	GradientViews bool `json:"gradient_as_bucket_view,omitzero"`
	EMA           bool `json:"ema,omitzero"` // a moving average of the trained weights

	// Preset is the training program that sets the defaults and drives the engine; empty: a loop
	// written by hand. Resolving replaces "auto" by the one that follows from strategy and engine.
	Preset string `json:"preset,omitzero"`

	// BuiltOn is where the preset's program builds the model: gpu or cpu. Empty means gpu if the model fits.
	BuiltOn string `json:"built_on,omitzero"`

	// EvalBatch is each GPU's batch in the preset's evaluation; 0: none. EvalSamples are the
	// samples with logits that it keeps for metrics.
	EvalBatch   int64 `json:"eval_batch,omitzero"`
	EvalSamples int64 `json:"eval_samples,omitzero"`

	// DeepSpeed are the settings of its configuration file ([Workload.ReadDeepSpeed]); nil: its
	// defaults. Resolving compares the file's batch, precision and stage with the other fields, or
	// replaces them; "auto" sizes are those that Transformers fills in.
	DeepSpeed *zero.Settings `json:"deepspeed,omitzero"`
	// HostStates asks for DeepSpeed's defaults with sharded state in host memory: optimizer states,
	// and parameters under stage 3. Resolving makes settings of it.
	HostStates bool `json:"-"`
	// HostShards: FSDP keeps its shards and states in host memory (CPUOffloadPolicy).
	HostShards bool `json:"host_shards,omitzero"`
}

// Serving are the sizes of an engine that serves ([Serve]); zero under other modes.
type Serving struct {
	Context   int64 `json:"context,omitzero"`   // tokens of a sequence, with those that it generates
	Sequences int64 `json:"sequences,omitzero"` // at a time
	// KVType is the type of the cache of keys and values, by the engine's name for it.
	KVType string `json:"kv_type,omitzero"`
	// UBatch is the tokens of one pass of llama.cpp.
	UBatch int64 `json:"ubatch,omitzero"`
	// BatchedTokens are the most tokens of one pass of vLLM or SGLang.
	BatchedTokens int64 `json:"batched_tokens,omitzero"`
	// CalibratedBytes are bytes of each GPU that a start-up log had beyond the prediction.
	CalibratedBytes int64 `json:"calibrated_bytes,omitzero"`
	// EngineVersion is the release of the engine whose rules count, as 0.33.
	EngineVersion string `json:"engine_version,omitzero"`
	// Eager: no CUDA graphs.
	Eager bool `json:"eager,omitzero"`
	// HostExperts are the first blocks whose experts stay on the host (llama.cpp: --n-cpu-moe).
	HostExperts int64 `json:"host_experts,omitzero"`
	// InTurn: devices work on a prompt one after another, which needs no copies of their inputs.
	InTurn bool `json:"in_turn,omitzero"`
	// MMProj is the file of an encoder of images, on the first GPU (llama.cpp: --mmproj).
	MMProj string `json:"mmproj,omitzero"`
	// Draft is the file of a model that proposes tokens, on the GPU DraftGPU (llama.cpp: -md, -devd).
	Draft    string `json:"draft,omitzero"`
	DraftGPU int64  `json:"draft_gpu,omitzero"`
}

// ReadDeepSpeed reads DeepSpeed's configuration file (ds_config.json); errors name file. It refuses
// unknown keys, and keys with an effect on GPU memory that is not modelled.
func (workload *Workload) ReadDeepSpeed(file string, text []byte) (err error) {
	workload.DeepSpeed, err = zero.Read(file, text)
	return err
}

// Mode is the kind of work.
type Mode string

// The modes.
const (
	Infer Mode = "infer" // one forward, or generation with NewTokens
	Train Mode = "train" // a full step at iteration ≥ 2
	Load  Mode = "load"  // weights and buffers only
	Serve Mode = "serve" // an engine that serves, with the cache of its sequences
)

// The plain optimizers.
const (
	AdamW = "adamw" // fused; two states in the dtype of the weights
	SGD   = "sgd"
)

// The recompute modes of whole units.
const (
	RecomputeNone = "none"
	RecomputeFull = "full" // every wrap unit

	// OffloadAll offloads the activations of all blocks.
	OffloadAll = "full"
)
