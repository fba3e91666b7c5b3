package costmodel

// Workload is what the model is asked to do: the resolved flags.
type Workload struct {
	Mode         Mode     `json:"mode"`
	Strategy     Strategy `json:"strategy"`
	Runtime      Runtime  `json:"runtime"`
	Batch        int64    `json:"batch"`         // sequences a step
	MicroBatches int64    `json:"micro_batches"` // equal parts of the batch
	Seq          int64    `json:"seq"`           // tokens a sequence
	TargetSeq    int64    `json:"target_seq"`    // decoder tokens of an encoder–decoder
	NewTokens    int64    `json:"new_tokens"`    // generated after the prompt; 0: one forward
	Images       int64    `json:"images"`        // a sequence; their tokens are part of Seq
	// ImageSize is the side of the images, squares, in pixels; 0: the model's
	// own ([modelgraph.Stream]).
	ImageSize int64     `json:"image_size,omitzero"`
	Precision Precision `json:"precision"`
	// StoredTypes: no precision was asked for, so that tensors keep the
	// types they are stored in; Precision is that of most of them.
	StoredTypes bool `json:"stored_types,omitzero"`
	// Dequantized: the GPUs have no arithmetic for the stored quantised weights,
	// which are loaded as bf16.
	Dequantized bool      `json:"dequantized,omitzero"`
	Optimizer   Optimizer `json:"optimizer"`
	Recompute   Recompute `json:"recompute"`

	// World is the number of GPUs that work together where each runs the
	// whole model (ddp, zero, fsdp, hsdp) or a stage of it (pipeline).
	World int64 `json:"world,omitzero"`
	// Schedule and VirtualStages, the runs a device, are a pipeline's.
	Schedule      ScheduleKind `json:"schedule,omitzero"`
	VirtualStages int64        `json:"virtual_stages,omitzero"`
	// ShardDegree is over how many GPUs a parameter is cut (zero, fsdp, hsdp).
	ShardDegree int64 `json:"shard_degree,omitzero"`

	LoRARank    int64    `json:"lora_rank,omitzero"`    // 0: none
	LoRATargets []string `json:"lora_targets,omitzero"` // module suffixes
	// LoRAPrecision is the type of the adapters' weights.
	LoRAPrecision AdapterPrecision `json:"lora_precision,omitzero"`
	Quantize      Quantize         `json:"quantize,omitzero"` // of the frozen base

	Loss      Loss            `json:"loss,omitzero"`
	Attention AttentionKernel `json:"attention,omitzero"`
	// LossOnly: the caller keeps the loss alone, so that the outputs are gone
	// before backward begins.
	LossOnly bool `json:"loss_only,omitzero"`
	// GradientViews: DDP's gradients are views of its buckets.
	GradientViews bool `json:"gradient_as_bucket_view,omitzero"`
	EMA           bool `json:"ema,omitzero"` // a moving average of the trained weights
}

// MicroBatch is the number of sequences that run at once.
func (workload *Workload) MicroBatch() int64 {
	return workload.Batch / max(1, workload.MicroBatches)
}

// Mode is the kind of work.
type Mode string

// The modes.
const (
	Infer Mode = "infer" // one forward, or generation with NewTokens
	Train Mode = "train" // a full step at iteration ≥ 2
	Load  Mode = "load"  // weights and buffers only
)

// Optimizer is the update rule.
type Optimizer string

// The optimizers of the contract.
const (
	AdamW        Optimizer = "adamw"         // fused; two states in the dtype of the weights
	AdamWForeach Optimizer = "adamw-foreach" // the same states, temporaries in the step
	AdamW8bit    Optimizer = "adamw-8bit"    // bitsandbytes
	SGD          Optimizer = "sgd"
	SGDMomentum  Optimizer = "sgd-momentum"
	Adafactor    Optimizer = "adafactor"
	Muon         Optimizer = "muon"
)

// Recompute is what forward drops and backward computes again.
type Recompute string

// The recompute modes.
const (
	RecomputeNone      Recompute = "none"
	RecomputeFull      Recompute = "full" // every wrap unit
	RecomputeSelective Recompute = "selective"
)

// Quantize is how the frozen weights of linear layers are stored.
type Quantize string

// The quantisations; the zero value is none.
const (
	NF4  Quantize = "nf4"  // bitsandbytes, 4 bits with nested statistics
	Int8 Quantize = "int8" // bitsandbytes LLM.int8()
)

// AdapterPrecision is the type of LoRA adapters between steps.
type AdapterPrecision string

// The types of adapters.
const (
	AdaptersFP32 AdapterPrecision = "fp32"
	AdaptersBF16 AdapterPrecision = "bf16" // or fp16, as the base is
)

// Loss is how the language model's loss is computed.
type Loss string

// The losses; the zero value is LossEager.
const (
	LossEager   Loss = "eager"   // all logits, upcast to fp32 (Transformers)
	LossChunked Loss = "chunked" // a part of the tokens at a time
	LossFused   Loss = "fused"   // one kernel makes loss and gradients (Liger)
)

// AttentionKernel is which kernel computes attention.
type AttentionKernel string

// The kernels; the zero value is SDPA.
const (
	SDPA           AttentionKernel = "sdpa"  // PyTorch's choice: flash where types and masks allow
	EagerAttention AttentionKernel = "eager" // the score matrix in memory
	FlashAttention AttentionKernel = "flash" // the flash-attn package, versions 2 and 3
)
