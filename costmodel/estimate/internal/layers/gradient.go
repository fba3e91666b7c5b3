package layers

import (
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// gradients assigns each parameter's gradient to a layer, a tied one first to the last that runs.
func (model *Model) gradients() {
	if model.Frozen {
		model.adapterGradients()
		return
	}
	last := make(map[string]int)   // owner → the layer that uses it last
	lowest := make(map[string]int) // and first
	model.eachGradient(func(i int, owner string, size int64) {
		if owner == "" {
			model.Layers[i].Grads.First += size
			return
		}
		i = order(model, i)
		if _, ok := lowest[owner]; !ok {
			lowest[owner] = i
		}
		last[owner] = max(last[owner], i)
	})
	model.eachGradient(func(i int, owner string, size int64) {
		if owner == "" {
			return
		}
		grads := &model.Layers[i].Grads
		i = order(model, i)
		if last[owner] == i {
			grads.First += size
		} else {
			grads.Second += size
		}
		if last[owner] != lowest[owner] {
			switch i {
			case last[owner]:
				grads.Waits += size
			case lowest[owner]:
				grads.Waits -= size
			}
		}
	})
	for i := range model.Layers {
		if bytes, ok := model.Layers[i].Whole.DeclaredBytes(); ok && model.Layers[i].Runs {
			model.Layers[i].Grads = Gradient{First: bytes}
		}
	}
}

// order is a layer's place in a forward, as far as ties need it: a head runs last, though
// encoders have it first (modeling_roberta.py, RobertaForMaskedLM).
func order(model *Model, i int) int {
	if _, last := model.Layers[i].Op.(modelgraph.Head); last {
		return i + len(model.Layers)
	}
	return i
}

// eachGradient visits the parameters with gradients in module order; tied ones with their owner's name.
func (model *Model) eachGradient(visit func(i int, owner string, size int64)) {
	tied := make(map[string]bool)
	for i := range model.Layers {
		for j := range model.Layers[i].Params {
			if owner := model.Layers[i].Params[j].Owner; owner != "" {
				tied[owner] = true
			}
		}
	}
	for i := range model.Layers {
		layer := &model.Layers[i]
		if _, declared := layer.Whole.DeclaredBytes(); declared || !layer.Runs {
			continue
		}
		for j := range layer.Params {
			tensor := &layer.Params[j]
			owner := tensor.Owner
			if owner == "" && len(tied) > 0 {
				if owner = modelgraph.FullName(layer.Name, tensor.Name); !tied[owner] {
					owner = ""
				}
			}
			if trains(tensor) {
				visit(i, owner, tensor.Numel*own(model, tensor, ops.WeightBytes(model.Rules.Compute))*model.wholeGradient(layer))
			}
		}
	}
}

// adapterGradients are the gradients of a frozen model: only its adapters'.
func (model *Model) adapterGradients() {
	for i := range model.Layers {
		if layer := &model.Layers[i]; layer.Runs {
			size, _ := layer.Whole.AdapterBytes()
			layer.Grads.First = size / model.adapterWeight() * model.AdapterCompute()
		}
	}
}

// wholeGradient is how many shards of a tensor its gradient has. If GPUs share an embedding's rows, each
// has the whole gradient. DTensor has no rule for such a lookup's backward, so weight.grad is Replicate
// (torch 2.11, distributed/tensor/_ops/_embedding_ops.py, embedding_dense_backward_strategy).
func (model *Model) wholeGradient(layer *Layer) int64 {
	if _, table := layer.Op.(modelgraph.Embedding); table && model.Rules.Modules != ops.Torchtitan { // its lookup is local (models/common/embedding.py)
		return model.Workload.TP.Count()
	}
	return 1
}
