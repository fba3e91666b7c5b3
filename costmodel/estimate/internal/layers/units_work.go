package layers

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// work is a unit's device time and its traffic across links.
func work(model *Model, index int) costmodel.Work {
	var out costmodel.Work
	workload, run := &model.Workload, 0
	for _, i := range model.Unit(index) {
		layer := &model.Layers[i]
		for _, tensor := range layer.Owned() {
			out.Weights += tensor.Numel
			out.Tensors++
		}
		if workload.Mode == costmodel.Load {
			continue
		}
		run++
		forward, backward := passes(layer, model.Frozen)
		sums(model, layer, &forward, &backward)
		if layer.Runs {
			exchanges(model, layer, &forward, &backward)
		}
		out.Forward, out.Backward = Both(out.Forward, forward), Both(out.Backward, backward)
		out.Output = layer.Cost.Output
		if model.Train && layer.Runs {
			out.Trained += trained(model, layer)
		}
		if workload.NewTokens > 0 && layer.Runs && !model.Train {
			out.Token = Both(out.Token, token(layer, MicroBatch(workload)))
		}
	}
	out.Block = run > 1
	out.Update = float64(out.Trained) * model.Optimizer.Traffic(ops.WeightBytes(workload.Precision))
	if model.Train && model.again[index] && out.Block {
		out.Backward = Both(out.Backward, out.Forward)
	}
	if workload.MicroBatches > 1 { // each gradient is added to the existing one
		out.Backward.Traffic += 3 * float64(out.Trained*ops.WeightBytes(model.Rules.Compute))
	}
	return out
}

// passes are the passes of all its runs.
func passes(layer *Layer, frozen bool) (forward, backward costmodel.Pass) {
	times := layer.Times()
	once, back := ops.Passes(layer.Op, &layer.Shape, layer.Cost.FLOPs/float64(times), frozen)
	once, back = profiled(layer.Declared, once, back)
	for range times {
		forward, backward = Both(forward, once), Both(backward, back)
	}
	return forward, backward
}

// profiled puts the seconds that a layer declares in the place of its operations.
func profiled(declared *modelgraph.Declared, forward, backward costmodel.Pass) (_, _ costmodel.Pass) {
	if declared != nil && declared.ForwardSeconds >= 0 {
		forward = costmodel.Pass{Profiled: declared.ForwardSeconds}
	}
	if declared != nil && declared.BackwardSeconds >= 0 {
		backward = costmodel.Pass{Profiled: declared.BackwardSeconds}
	}
	return forward, backward
}

// trained is the trained elements of a layer's own parameters: all, or its adapters' matrices.
func trained(model *Model, layer *Layer) int64 {
	var total int64
	if model.Frozen {
		for k := range layer.Whole.Adapters {
			total += layer.Whole.Adapters[k].Weights()
		}
		return total
	}
	for _, tensor := range layer.Owned() {
		if trains(tensor) {
			total += tensor.Numel
		}
	}
	return total
}

// token is a forward of one token a sequence: it reads every weight once, and the cache half grown.
func token(layer *Layer, sequences int64) costmodel.Pass {
	forward, _ := passes(layer, true)
	part := float64(max(1, sequences)) / float64(max(1, layer.Shape.Tokens))
	if _, ok := layer.Op.(modelgraph.Head); ok {
		part = 1 // it projects one position a sequence in any case
	}
	return costmodel.Pass{
		Products: layer.Cost.FLOPs * part,
		Traffic:  float64(layer.Times()*layer.Whole.Bytes() + layer.Cost.Memory.KV + layer.Cost.Memory.CacheGrowth/2),
		Kernels:  forward.Kernels,
	}
}

// sums are the all-reduces over GPUs that share the layer: of its output, and of its input's
// gradient. The embedding's input has none; the head's output stays split, with a few sums a token.
func sums(model *Model, layer *Layer, forward, backward *costmodel.Pass) {
	if model.Workload.TP.Count() == 1 || !layer.Runs {
		return
	}
	var dim int64
	ahead, back := 1., 1.
	switch op := layer.Op.(type) {
	case modelgraph.Attention:
		dim = op.Dim
	case modelgraph.MLP:
		dim = op.Dim
	case modelgraph.MoE:
		dim = op.Dim
	case modelgraph.Embedding:
		dim, back = op.Dim, 0
	case modelgraph.Head:
		dim, ahead = op.Dim, 0
	}
	if dim == 0 {
		return
	}
	bytes := float64(ops.ComputeBytes(layer.Shape.Precision) * dim * layer.Shape.Tokens)
	forward.Reduced, forward.Reductions = ahead*bytes, ahead
	if model.Train {
		backward.Reduced, backward.Reductions = back*bytes, back
	}
}

// Both are two passes, one after the other.
func Both(pass, next costmodel.Pass) costmodel.Pass {
	return costmodel.Pass{
		Products: pass.Products + next.Products, Unaligned: pass.Unaligned + next.Unaligned, Attention: pass.Attention + next.Attention,
		Traffic: pass.Traffic + next.Traffic, Strided: pass.Strided + next.Strided, Kernels: pass.Kernels + next.Kernels, Profiled: pass.Profiled + next.Profiled,
		Reduced: pass.Reduced + next.Reduced, Reductions: pass.Reductions + next.Reductions,
		Shared: pass.Shared + next.Shared, Dispatched: pass.Dispatched + next.Dispatched,
	}
}
