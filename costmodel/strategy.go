package costmodel

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

// Strategies are those that can be planned, in the contract's order.
func Strategies() []Strategy {
	return []Strategy{DeviceMap, Pipeline, DDP, Zero1, Zero2, Zero3, FSDP, HSDP}
}

// Replicated reports that every GPU runs the whole model on its own data, so
// that there is no device map.
func (s Strategy) Replicated() bool {
	switch s {
	case DDP, Zero1, Zero2, Zero3, FSDP, HSDP:
		return true
	default:
		return false
	}
}

// Sharded reports that parameters are cut over GPUs and gathered for use.
func (s Strategy) Sharded() bool { return s == Zero3 || s == FSDP || s == HSDP }

// Runtime is the engine whose tensors are counted.
type Runtime string

// The engines that are built.
const (
	Accelerate Runtime = "accelerate" // Hugging Face Accelerate's naive model parallelism
	Torch      Runtime = "torch"      // DDP, FSDP2 and torch.distributed.pipelining
	Lightning  Runtime = "lightning"  // PyTorch Lightning's defaults on torch's engines
	DeepSpeed  Runtime = "deepspeed"  // ZeRO's states
)

// Runtimes are those that run the strategy, the default first.
func (s Strategy) Runtimes() []Runtime {
	switch s {
	case DeviceMap:
		return []Runtime{Accelerate}
	case Zero1, Zero2, Zero3:
		return []Runtime{DeepSpeed}
	case DDP:
		return []Runtime{Torch, Lightning}
	default:
		return []Runtime{Torch}
	}
}
