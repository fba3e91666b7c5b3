package costmodel

import "github.com/devmap-dev/devmap/modelgraph"

// Workload is what the model is asked to do: the resolved flags.
type Workload struct {
	Mode         Mode      `json:"mode"`
	Strategy     Strategy  `json:"strategy"`
	Runtime      Runtime   `json:"runtime"`
	Batch        int64     `json:"batch"`         // sequences a step
	MicroBatches int64     `json:"micro_batches"` // equal parts of the batch
	Seq          int64     `json:"seq"`           // tokens a sequence
	TargetSeq    int64     `json:"target_seq"`    // decoder tokens of an encoder–decoder
	NewTokens    int64     `json:"new_tokens"`    // generated after the prompt; 0: one forward
	Images       int64     `json:"images"`        // a sequence
	Precision    Precision `json:"precision"`
	// StoredTypes: no precision was asked for, so that tensors keep the
	// types they are stored in; Precision is that of most of them.
	StoredTypes bool      `json:"stored_types,omitzero"`
	Optimizer   Optimizer `json:"optimizer"`
	Recompute   Recompute `json:"recompute"`
}

// MicroBatch is the number of sequences that run at once.
func (w *Workload) MicroBatch() int64 {
	return w.Batch / max(1, w.MicroBatches)
}

// Tokens is the number of tokens of a stream in one micro-batch, and the
// length of one of its sequences.
func (w *Workload) Tokens(s modelgraph.Stream) (tokens, length int64) {
	b := w.MicroBatch()
	switch s.Kind {
	case modelgraph.Target:
		return b * w.TargetSeq, w.TargetSeq
	case modelgraph.Fixed:
		return b * s.Tokens, s.Tokens
	case modelgraph.Image:
		return b * w.Images * s.Tokens, s.Tokens
	case modelgraph.Text:
	}
	return b * w.Seq, w.Seq
}

// Mode is the kind of work.
type Mode string

// The modes.
const (
	Infer Mode = "infer" // one forward, or generation with NewTokens
	Train Mode = "train" // a full step at iteration ≥ 2
	Load  Mode = "load"  // weights and buffers only
)

// Strategy is how the model is spread.
type Strategy string

// The strategies of the contract.
const (
	DeviceMap Strategy = "device-map"
	Pipeline  Strategy = "pipeline"
	DDP       Strategy = "ddp"
	Zero1     Strategy = "zero1"
	Zero2     Strategy = "zero2"
	Zero3     Strategy = "zero3"
	FSDP      Strategy = "fsdp"
	HSDP      Strategy = "hsdp"
)

// Runtime is the engine whose tensors are counted.
type Runtime string

// Accelerate is Hugging Face Accelerate's naive model parallelism.
const Accelerate Runtime = "accelerate"

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
