package costmodel

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
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
	// Auto is the fastest that fits; a workload that is resolved never has it.
	Auto Strategy = "auto"
)

// Devmap is the runtime that is devmap's own engine: it plans every byte of a
// device before it runs, as its recipe (package recipe) says.
const Devmap = "devmap"

// The runtimes that serve: llama.cpp takes GGUF files, the others what Transformers takes.
const (
	LlamaCPP = "llama.cpp"
	VLLM     = "vllm"
	SGLang   = "sglang"
)

// Serves reports a runtime that serves.
func Serves(runtime string) bool { return slices.Contains([]string{LlamaCPP, VLLM, SGLang}, runtime) }

// Traits are what follows from a strategy. All that depends on the strategy
// asks for one of them, so that a strategy is a row of the table.
type Traits struct {
	// Open: no strategy is chosen yet.
	Open bool
	// Sequential: one process owns all GPUs, which run one after another.
	Sequential bool
	// Staged: each GPU runs a stage of the layers, on micro-batches in turn.
	Staged bool
	// Replicated: every GPU runs the whole model on its own data, so that there is no device map.
	Replicated bool
	// ZeroStage is what replicas cut over [Workload.ShardDegree] GPUs, as ZeRO counts it (arXiv
	// 1910.02054, section 5): 1 optimizer states, 2 gradients too, 3 parameters too. 0: nothing.
	ZeroStage int
	// Sharded is ZeRO's stage 3: parameters are gathered for use. ByBlock: a block at a time and
	// cut tensor by tensor (FSDP2); else a module at a time and cut flat (DeepSpeed).
	Sharded, ByBlock bool
	// Groups of GPUs that each hold all shards, and reduce between them, if the degree is open.
	Groups int64
	// MinGPUs is the least number of GPUs that the strategy makes sense on.
	MinGPUs int64
	// Runtimes run it, the default first. None: it is open, or unknown.
	Runtimes []string
}

// strategies is the table, in the contract's order.
var strategies = []struct {
	name   Strategy
	traits Traits
}{
	{DeviceMap, Traits{Sequential: true, Runtimes: []string{value.Accelerate, Devmap}}},
	{Pipeline, Traits{Staged: true, Runtimes: []string{value.Torch, value.Torchtitan, value.Megatron, Devmap}}},
	{DDP, Traits{Replicated: true, Runtimes: []string{value.Torch, value.Lightning}}},
	{Zero1, Traits{Replicated: true, ZeroStage: 1, Groups: 1, Runtimes: []string{value.DeepSpeed}}},
	{Zero2, Traits{Replicated: true, ZeroStage: 2, Groups: 1, Runtimes: []string{value.DeepSpeed}}},
	{Zero3, Traits{Replicated: true, ZeroStage: 3, Sharded: true, Groups: 1, Runtimes: []string{value.DeepSpeed}}},
	{FSDP, Traits{Replicated: true, ZeroStage: 3, Sharded: true, ByBlock: true, Groups: 1, Runtimes: []string{value.Torch, value.JAX}}},
	// Groups of one GPU would be DDP, so that two groups of two are the least.
	{HSDP, Traits{Replicated: true, ZeroStage: 3, Sharded: true, ByBlock: true, Groups: 2, MinGPUs: 4, Runtimes: []string{value.Torch}}},
}

// Strategies returns the strategies that can be planned, in the contract's order.
func Strategies() []Strategy {
	out := make([]Strategy, len(strategies))
	for i := range strategies {
		out[i] = strategies[i].name
	}
	return out
}

// Traits is the strategy's row of the table; empty for an unknown one.
func (strategy Strategy) Traits() Traits {
	for i := range strategies {
		if strategies[i].name == strategy {
			return strategies[i].traits
		}
	}
	return Traits{Open: strategy == "" || strategy == Auto}
}
