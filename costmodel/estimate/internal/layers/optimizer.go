package layers

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// Optimizer is an optimizer as a run has it.
type Optimizer struct {
	Kind string // a value of the field optimizer ([costmodel.Fields]); empty: AdamW
	// EMA: a moving average of the weights is kept.
	EMA bool
	// Embeddings32: 8-bit states are fp32 for embeddings.
	Embeddings32 bool
	// Average is the size of an element of that average, a copy of the weights in their type
	// (torch.optim.swa_utils.AveragedModel; OpenPI's ema_params). 0: as the updated weights.
	Average int64
}

// State is the optimizer's state of one tensor with elements of each bytes, including the moving
// average, and a step's temporaries. A nil shape is a tensor of unknown dimensions.
func (rule *Optimizer) State(shape []int64, numel, each int64) (state, transient int64) {
	state, transient = kinds[rule.kind()].own(shape, numel, each)
	if rule.EMA {
		state += rule.Averaged(numel, each)
	}
	return state, transient
}

// Averaged is the moving average of so many elements of each bytes.
func (rule *Optimizer) Averaged(numel, each int64) int64 {
	if rule.Average > 0 {
		each = rule.Average
	}
	return numel * each
}

// Traffic is the bytes that a step reads and writes for an element of each bytes: it reads the
// gradient, and reads and writes the weight and each state. DeepSpeed writes the 16-bit weights
// from the fp32 ones (stage_1_and_2.py step).
func (rule *Optimizer) Traffic(each int64) float64 {
	weight := float64(each)
	state := kinds[rule.kind()].moved(weight)
	if rule.EMA {
		state += weight
	}
	return weight + 2*weight + 2*state
}

// kind is AdamW if none is asked for.
func (rule *Optimizer) kind() string { return cmp.Or(rule.Kind, costmodel.AdamW) }

// kinds are the optimizers. In torch.optim states have the weights' type (zeros_like(param)).
var kinds = map[string]struct {
	// own is the state of one tensor with elements of each bytes, and a step's temporaries.
	own func(shape []int64, numel, each int64) (state, transient int64)
	// moved is the bytes of an element's states that a step reads, and writes again.
	moved func(weight float64) float64
}{
	costmodel.AdamW:    {states(2), moved(2)},
	value.AdamWForeach: {adamWForeach, moved(2)},
	value.AdamW8bit:    {adamW8bit, func(float64) float64 { return 2 }},
	adamW32bit:         {func(_ []int64, numel, _ int64) (state, transient int64) { return 8 * numel, 0 }, func(float64) float64 { return 8 }},
	costmodel.SGD:      {states(0), moved(0)},
	value.SGDMomentum:  {states(1), moved(1)},
	value.Adafactor:    {adafactor, func(float64) float64 { return 4 }}, // the update itself, made and read
	value.Muon:         {muon, moved(1)},

	value.AdamWTorch8bit: {adamWTorch(1, 256), func(float64) float64 { return 2 }},
	value.AdamWTorch4bit: {adamWTorch(2, 16), func(float64) float64 { return 1 }},

	value.PagedAdamW8bit:  {pagedAdamW8bit, func(float64) float64 { return 2 }},
	value.PagedAdamW32bit: {pagedAdamW32bit, func(float64) float64 { return 8 }},
}

// states are so many copies of the weights.
func states(copies int64) func(shape []int64, numel, each int64) (state, transient int64) {
	return func(_ []int64, numel, each int64) (state, transient int64) { return copies * numel * each, 0 }
}

func moved(copies float64) func(weight float64) float64 {
	return func(weight float64) float64 { return copies * weight }
}

func adamWForeach(_ []int64, numel, each int64) (state, transient int64) {
	return 2 * numel * each, numel * each // _foreach_sqrt's list
}

func adamW8bit(_ []int64, numel, _ int64) (state, transient int64) {
	if numel < 4096 { // bitsandbytes: min_8bit_size
		return 8 * numel, 0
	}
	return 2 * (numel + 4*((numel+255)/256)), 0 // fp32 absmax per 256
}

// adamWTorch has two states of torchao, each with several numbers in a byte. An fp32 scale for each
// block of 256 (the Trainer's) and a table of fp32 values come on top. Small tensors and partial
// blocks keep their type (torchao 0.18, optim/adam.py, _new_buffer; subclass_8bit.py and
// subclass_4bit.py, zeros).
func adamWTorch(packed, values int64) func(shape []int64, numel, each int64) (state, transient int64) {
	const block, least = 256, 4096
	return func(_ []int64, numel, each int64) (state, transient int64) {
		if numel < least || numel%block != 0 {
			return 2 * numel * each, 0
		}
		// TorchInductor's kernels write both moments in fp32, and codes of half a byte
		// as int64 (quant_utils.py, quantize_4bit_with_qmap).
		transient = 2 * 4 * numel
		if packed > 1 {
			transient += 2 * 8 * numel
		}
		return 2 * (numel/packed + 4*numel/block + 4*values), transient
	}
}

// inTurn reports an optimizer whose step runs one parameter after another, so its temporaries are
// those of the largest (Transformers, Adafactor.step; torch/optim/_muon.py, _single_tensor_muon).
func (rule *Optimizer) inTurn() bool {
	return rule.kind() == value.Adafactor || rule.kind() == value.Muon || rule.compiled()
}

// oneLargest reports that one GPU runs the whole step, so that one parameter is its largest. If
// several have parts of the model, the largest of each block counts.
func oneLargest(model *Model) bool {
	rule := &model.Optimizer
	return rule.compiled() || rule.inTurn() && (model.Workload.OneGPU || model.Workload.Strategy.Traits().Replicated)
}

// compiled reports an optimizer with a step that compiles a function of one tensor.
func (rule *Optimizer) compiled() bool {
	return rule.kind() == value.AdamWTorch8bit || rule.kind() == value.AdamWTorch4bit
}

// pagedFrom is the number of elements from which a state is in unified memory, outside PyTorch's
// allocator (bitsandbytes 0.49, optim/optimizer.py, Optimizer8bit.get_state_buffer: F.get_paged).
const pagedFrom = 100_000

// pagedAdamW8bit keeps the maxima of its blocks on the GPU (Optimizer2State.init_state:
// absmax1, absmax2).
func pagedAdamW8bit(shape []int64, numel, each int64) (state, transient int64) {
	state, transient = adamW8bit(shape, numel, each)
	return state - paged8bit(numel), transient
}

func pagedAdamW32bit(_ []int64, numel, _ int64) (state, transient int64) {
	return 8*numel - paged32bit(numel), 0
}

func paged8bit(numel int64) int64  { return pagedStates(numel, 1) }
func paged32bit(numel int64) int64 { return pagedStates(numel, 4) }

func pagedStates(numel, each int64) int64 {
	if numel < pagedFrom {
		return 0
	}
	return 2 * numel * each
}

// paged is the bytes of a tensor's states in unified memory.
func (rule *Optimizer) paged(numel int64) int64 {
	switch rule.kind() {
	case value.PagedAdamW8bit:
		return paged8bit(numel)
	case value.PagedAdamW32bit:
		return paged32bit(numel)
	}
	return 0
}

// forEmbedding is the optimizer of an embedding's weight: in 32 bits if the program asks for it
// (transformers 5.17, trainer.py, create_optimizer: register_module_override).
func (rule *Optimizer) forEmbedding() *Optimizer {
	wide := *rule
	switch rule.kind() {
	case value.AdamW8bit:
		wide.Kind = adamW32bit
	case value.PagedAdamW8bit:
		wide.Kind = value.PagedAdamW32bit
	}
	return &wide
}

// adamW32bit is bitsandbytes' AdamW with fp32 states for all weights; devmap has it for embeddings.
const adamW32bit = "adamw-32bit"

func muon(shape []int64, numel, each int64) (state, transient int64) {
	if len(shape) == 2 {
		return numel * each, 3 * 2 * numel // Newton–Schulz: bf16 copies
	}
	return 2 * numel * each, 0
}

// adafactor keeps a row and a column of second moments in fp32 for a matrix, else all of them
// (Shazeer and Stern 2018, §3). Its step makes the square of the gradient and a sum while the last
// parameter's update is still there, and copies 16-bit weights and gradients to fp32 (Transformers
// 5.17, optimization.py, Adafactor.step). A parameter as large may have come before.
func adafactor(shape []int64, numel, each int64) (state, transient int64) {
	transient = 3 * 4 * numel
	if each < 4 {
		transient += 2 * 4 * numel
	}
	if len(shape) < 2 {
		return 4 * numel, transient
	}
	cols := max(1, shape[len(shape)-1])
	rows := max(1, shape[len(shape)-2])
	outer := numel / (rows * cols)
	return 4 * outer * (rows + cols), transient
}
