package layers

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/modelgraph"
)

// parts makes both views of a layer's parameters.
func (model *Model) parts(i int) {
	layer, workload := &model.Layers[i], &model.Workload
	whole := Part{Layer: layer.Layer, degree: 1, model: model, linear: make([]*Projection, len(layer.Params))}
	projections := Projections(model.Graph, i)
	for j := range projections {
		whole.linear[projections[j].Param] = &projections[j]
	}
	whole.Adapters = adapters(model, i, projections)
	layer.Whole, layer.Shard = whole, whole
	if model.Rules.Cut {
		layer.Shard = whole.cut(shard.RuleOf(workload), workload.ShardDegree)
	}
}

// cut is one GPU's part.
func (part Part) cut(rule shard.Rule, degree int64) Part {
	local := *part.Layer
	local.Params = make([]modelgraph.Tensor, len(part.Params))
	whole := make([]int64, len(part.Params))
	for j := range part.Params {
		whole[j] = part.Params[j].Numel
		if part.byColumns(j) {
			local.Params[j] = part.Params[j]
			narrow(&local.Params[j], 1, part.Degree(j))
			continue
		}
		local.Params[j] = rule.Tensor(&part.Params[j], part.Degree(j))
	}
	if bytes, ok := part.DeclaredBytes(); ok {
		declared := *part.Declared
		declared.ParamsBytes = shard.Share(bytes, degree)
		local.Declared = &declared
	}
	part.Layer, part.degree, part.whole = &local, degree, whole
	return part
}

// AllLinear is PEFT's shorthand for every linear layer but the output head.
const AllLinear = "all-linear"

// targeted is PEFT's rule (peft/tuners/tuners_utils.py, check_target_module_exists): a target names
// the module, or its end after a dot.
func targeted(targets []string, linear *Projection) bool {
	for _, target := range targets {
		if strings.EqualFold(target, AllLinear) && !linear.Head || linear.Module == target || strings.HasSuffix(linear.Module, "."+target) {
			return true
		}
	}
	return false
}

// DeclaredBytes are the parameters' bytes if the model file declares them instead of tensors.
func (part *Part) DeclaredBytes() (int64, bool) {
	if part.Declared == nil || part.Declared.ParamsBytes < 0 {
		return 0, false
	}
	return part.Declared.ParamsBytes, true
}

// Bytes is the loaded size of the parameters.
func (part *Part) Bytes() int64 {
	total, _ := part.AdapterBytes()
	if bytes, ok := part.DeclaredBytes(); ok {
		return total + bytes
	}
	for j := range part.Owned() {
		total += part.Stored(j)
	}
	return total
}

// ReadBytes is the loaded size of the parameters that the layer's forward reads: of tied ones too.
func (part *Part) ReadBytes() int64 {
	total := part.Bytes()
	if _, ok := part.DeclaredBytes(); ok {
		return total
	}
	for j := range part.Params {
		if part.Params[j].Owner != "" {
			total += part.Stored(j)
		}
	}
	return total
}

// Stored is the loaded size of parameter j.
func (part *Part) Stored(j int) int64 {
	if parts := part.quantised(j); parts != nil {
		var total int64
		for _, size := range parts {
			total += size
		}
		return total
	}
	workload, rules := &part.model.Workload, &part.model.Rules
	tensor := &part.Params[j]
	switch { // quantised tensors and those of a fixed type do not change
	case workload.StoredTypes || !tensor.DType.Float() || rules.FrozenAsStored && part.model.Frozen:
		return tensor.Bytes
	case rules.Masters:
		return tensor.Numel * ops.WeightBytes(rules.Compute)
	default:
		return tensor.Numel * ops.WeightBytes(workload.Precision)
	}
}

// Padding is what PyTorch's allocator adds to the parameters.
func (part *Part) Padding() int64 {
	if _, ok := part.DeclaredBytes(); ok {
		return 0
	}
	_, total := part.AdapterBytes()
	for j := range part.Owned() {
		if parts := part.quantised(j); parts != nil {
			for _, size := range parts {
				total += allocator.Rounding(size)
			}
			continue
		}
		total += allocator.Rounding(part.Stored(j))
	}
	return total
}

// trains reports whether a parameter gets a gradient: complex numbers do, quantised and frozen ones do not.
func trains(tensor *modelgraph.Tensor) bool {
	return !tensor.Frozen && (tensor.DType.Float() || tensor.DType.String() == "C64")
}

// own is the bytes of an element of a parameter's gradient and states, as a type of the
// workload has them. An exported module has its parameters in the types of its memory.
func own(model *Model, tensor *modelgraph.Tensor, bytes int64) int64 {
	if !tensor.DType.Float() || model.Workload.StoredTypes && model.Graph.Taken.Precision != "" {
		return tensor.DType.Bits() / 8
	}
	return bytes
}

// States are the optimizer's states of the layer, and the temporaries of one step.
func (part *Part) States() (state, transient int64) {
	rule, each := part.optimizer(), ops.WeightBytes(part.model.Workload.Precision)
	if part.model.Frozen {
		for _, matrix := range part.Matrices() {
			retained, passing := rule.State(matrix.Shape(), matrix.Numel(), part.model.adapterWeight())
			state, transient = state+retained, transient+passing
		}
		return state, transient
	}
	if bytes, ok := part.DeclaredBytes(); ok {
		return rule.State(nil, bytes/each, each)
	}
	for j, tensor := range part.Owned() {
		if trains(tensor) && !part.untrained(j) { // quantised weights are not trained
			retained, passing := rule.State(tensor.Shape, tensor.Numel, own(part.model, tensor, each))
			state += retained
			if !tensor.DType.Float() { // torch/optim/adam.py: no fused kernel takes it, and _multi_tensor_adam has square roots of all
				passing = max(passing, tensor.Bytes)
			}
			if rule.inTurn() {
				transient = max(transient, passing)
			} else {
				transient += passing
			}
		}
	}
	return state, transient
}

// optimizer is the one that updates the layer's weights.
func (part *Part) optimizer() *Optimizer {
	rule := &part.model.Optimizer
	if _, embeds := part.Op.(modelgraph.Embedding); embeds && rule.Embeddings32 && !part.model.Frozen {
		return rule.forEmbedding()
	}
	return rule
}

// Paged is the optimizer's memory of the layer in unified memory.
func (part *Part) Paged() (paged int64) {
	if part.model.Frozen {
		for _, matrix := range part.Matrices() {
			paged += part.model.Optimizer.paged(matrix.Numel())
		}
		return paged
	}
	for _, tensor := range part.Owned() {
		if tensor.DType.Float() {
			paged += part.optimizer().paged(tensor.Numel)
		}
	}
	return paged
}

// updating is the largest temporary of an update of one of the layer's tensors.
func (part *Part) updating() (most int64) {
	rule, each := part.optimizer(), ops.WeightBytes(part.model.Workload.Precision)
	for _, matrix := range part.Matrices() {
		_, passing := rule.State(matrix.Shape(), matrix.Numel(), part.model.adapterWeight())
		most = max(most, passing)
	}
	for _, tensor := range part.Owned() {
		if trains(tensor) && !part.model.Frozen {
			_, passing := rule.State(tensor.Shape, tensor.Numel, own(part.model, tensor, each))
			most = max(most, passing)
		}
	}
	return most
}
