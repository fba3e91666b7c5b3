// Package value names values of a workload that the cost model distinguishes and its API does not
// contain: users write them as flags or in plan files. costmodel.Fields declares all values.
package value

// Optimizers in addition to costmodel.AdamW, which is fused, and costmodel.SGD.
const (
	AdamWForeach = "adamw-foreach" // AdamW's states, temporaries in the step
	AdamW8bit    = "adamw-8bit"    // bitsandbytes
	// These have bitsandbytes' states in unified memory.
	PagedAdamW8bit  = "paged-adamw-8bit"
	PagedAdamW32bit = "paged-adamw-32bit"
	// These are torchao's.
	AdamWTorch8bit = "adamw-torch-8bit"
	AdamWTorch4bit = "adamw-torch-4bit"

	SGDMomentum = "sgd-momentum"
	Adafactor   = "adafactor"
	Muon        = "muon"
)

// RecomputeSelective recomputes only cheap operations.
const RecomputeSelective = "selective"

// RecomputeAuto is none or full, chosen for each stage of a pipeline.
const RecomputeAuto = "auto"

// Formats of frozen linear weights; empty: unchanged.
const (
	NF4  = "nf4"  // bitsandbytes, 4 bits with nested statistics
	Int8 = "int8" // bitsandbytes LLM.int8()
)

// How torchao scales 8-bit copies of the operands of linear layers; empty: there are none.
const (
	Tensorwise         = "tensorwise"          // one scale for a tensor
	TensorwiseGathered = "tensorwise-gathered" // and FSDP2 gathers weights in 8 bits
	Rowwise            = "rowwise"             // one for each row
)

// The types of LoRA adapters between steps.
const (
	AdaptersFP32 = "fp32"
	AdaptersBF16 = "bf16" // or fp16, as the base is
)

// These are the places of the whole model until the engine cuts it. No value means the GPU, if it fits there.
const (
	BuiltOnCPU = "cpu"
	BuiltOnGPU = "gpu"
)

// How the language model's loss is computed; empty: eager.
const (
	LossEager   = "eager"   // all logits, upcast to fp32 (Transformers)
	LossChunked = "chunked" // a part of the tokens at a time
	LossFused   = "fused"   // one kernel makes loss and gradients (Liger)
	LossTiled   = "tiled"   // tiles of tokens and vocabulary, made again in backward (TRL)
)

// Kernels of Mamba-2's mixers; empty: torch.
const (
	TorchKernels   = "torch"   // Transformers' own code
	PackageKernels = "package" // mamba-ssm and causal-conv1d
)

// Which kernel computes attention; empty: SDPA.
const (
	SDPA           = "sdpa"  // PyTorch's choice: flash if types and masks allow
	EagerAttention = "eager" // the score matrix in memory
	FlashAttention = "flash" // the flash-attn package, versions 2 and 3
)

// The engines that are built.
const (
	Accelerate = "accelerate" // Hugging Face Accelerate's naive model parallelism
	Torch      = "torch"      // DDP, FSDP2 and torch.distributed.pipelining
	Lightning  = "lightning"  // PyTorch Lightning's defaults on torch's engines
	DeepSpeed  = "deepspeed"  // ZeRO's states
	JAX        = "jax"        // a program that XLA compiles, as OpenPI's
	Torchtitan = "torchtitan" // torchtitan 0.3 on FSDP2, DTensor and torch's pipelines
	Megatron   = "megatron"   // Megatron-Core 0.19
)

// Reference is a frozen model: permanent bytes, and its forward's above the trained activations.
type Reference struct{ Params, Padding, Gathered, Forward int64 }
