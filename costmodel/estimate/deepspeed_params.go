package estimate

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// persistent is the most elements of a parameter that stays whole on every
// rank once it was gathered (zero/config.py, param_persistence_threshold).
const persistent = 1e5

// updatedTensor is a parameter that gets gradients.
type updatedTensor struct {
	shape []int64
	numel int64
}

// updated lists the parameters of a layer that get gradients.
func (e *estimator) updated(l *modelgraph.Layer) []updatedTensor {
	var out []updatedTensor
	if e.frozen() {
		for _, a := range e.adapters[l] {
			out = append(out, updatedTensor{[]int64{a.Rank, a.In}, a.Rank * a.In}, updatedTensor{[]int64{a.Out, a.Rank}, a.Rank * a.Out})
		}
		return out
	}
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		return []updatedTensor{{nil, l.Declared.ParamsBytes / e.w.Precision.WeightBytes()}}
	}
	for i := range l.Params {
		if t := &l.Params[i]; !t.Tied() && t.DType.Float() {
			out = append(out, updatedTensor{t.Shape, t.Numel()})
		}
	}
	return out
}

// zeroGathered is what a rank holds whole beside its parts: the largest unit,
// and all small parameters of the others, which stay
// (zero/parameter_offload.py, mark_persistent_parameters).
func (e *estimator) zeroGathered() int64 {
	var small, most int64
	for u := range e.g.Units {
		var whole, stays int64
		for _, i := range e.g.Units[u].Exec {
			l := &e.g.Layers[i]
			if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
				whole += l.Declared.ParamsBytes
				continue
			}
			for j := range l.Params {
				p := &l.Params[j]
				whole += e.stored(p) // a tied head gathers the embedding's
				if !p.Tied() && p.Numel() <= persistent {
					stays += e.stored(p)
				}
			}
		}
		small += stays
		most = max(most, whole-stays)
	}
	return small + most
}

// warnZero says what is not counted, and what DeepSpeed itself would say.
func (e *estimator) warnZero() {
	not := "reduce_bucket_size, 1 GB of bf16 gradients by default, and allgather_bucket_size"
	who := "ZeRO-2 estimator"
	p, cluster := e.g.ParamCount(), Cluster{GPUsPerNode: e.w.World, Nodes: 1}
	said := Zero2ModelStates(p, cluster, false)
	if e.w.Strategy == costmodel.Zero1 {
		who += ", for gradients cut as well,"
	}
	if e.w.Strategy == costmodel.Zero3 {
		not = "reduce_bucket_size, prefetch_bucket_size, and parameters that stay gathered up to max_live_parameters, 2 GB of bf16 by default"
		who, said = "ZeRO-3 estimator", Zero3ModelStates(p, LargestLayer(e.g), cluster, Offload{})
	}
	e.warnings = append(e.warnings, "DeepSpeed's buckets are not counted: "+not)
	if p == 0 {
		return // declared bytes alone: nothing for the estimator to count
	}
	e.warnings = append(e.warnings, fmt.Sprintf("DeepSpeed's own %s says %v a GPU for the states without offload: 16-bit weights, both copies of the gradients, fp32 master and states", who, costmodel.Bytes(said.GPU)))
}
