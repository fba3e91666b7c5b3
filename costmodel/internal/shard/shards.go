package shard

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Of shards the parameters of a graph for a sharding strategy; nil for another. Layers with only
// declared bytes have no parameters to list.
func Of(graph *modelgraph.Graph, workload *costmodel.Workload) *costmodel.Shards {
	if !workload.Strategy.Traits().Sharded || workload.ShardDegree < 1 {
		return nil
	}
	if workload.Runtime == value.JAX {
		return arrays(graph, workload.ShardDegree)
	}
	rule := RuleOf(workload)
	shards := &costmodel.Shards{Degree: workload.ShardDegree}
	flat := trainer.Of(workload.Preset).Path.Flat
	for _, group := range gathered(graph, workload) {
		unit := added(&shards.Units)
		unit.Name = group.Name
		first := len(shards.Params)
		for _, index := range group.Units {
			for i := graph.Units[index].First; i < graph.Units[index].End; i++ {
				layer := &graph.Layers[i]
				for _, tensor := range layer.Owned() {
					param := added(&shards.Params)
					param.Name, param.Numel = modelgraph.FullName(layer.Name, tensor.Name), tensor.Numel
					param.PaddedNumel = shards.Degree * product(rule.Local(tensor.Shape, shards.Degree))
					param.RankNumel = rule.Ranks(tensor.Shape, shards.Degree)
					unit.Params = append(unit.Params, param.Name)
					unit.Numel += param.Numel
					unit.PaddedNumel += param.PaddedNumel
				}
			}
		}
		if flat {
			joined(shards, first)
		}
	}
	return shards
}

// joined are the shards of parameters that are one flat tensor, from the first of them on. Rank r
// begins at r shares. The 16-byte padding between parameters is not counted (torch 2.11,
// distributed/fsdp/_flat_param.py, _get_shard).
func joined(shards *costmodel.Shards, first int) {
	params := shards.Params[first:]
	var total, start int64
	for i := range params {
		total += params[i].Numel
	}
	part := Share(total, shards.Degree)
	for i := range params {
		param := &params[i]
		param.PaddedNumel = param.Numel
		for rank := range param.RankNumel {
			from, to := int64(rank)*part, int64(rank+1)*part
			param.RankNumel[rank] = max(0, min(to, start+param.Numel)-max(from, start))
		}
		start += param.Numel
	}
	shards.Units[len(shards.Units)-1].PaddedNumel = part * shards.Degree
}

// added is one more element of a list.
func added[E any](list *[]E) *E {
	var element E
	*list = append(*list, element)
	return &(*list)[len(*list)-1]
}

// gathered are the groups of a strategy. DeepSpeed wraps nothing: it fetches parameters module by
// module (partitioned_param_coordinator.py), so that each unit of the graph is a group of its own.
func gathered(graph *modelgraph.Graph, workload *costmodel.Workload) []Group {
	if workload.Strategy.Traits().ByBlock {
		return Groups(graph, EndsOf(workload))
	}
	var out []Group
	for unit := range graph.Units {
		if owns(graph, []int{unit}) {
			out = append(out, Group{Name: graph.Units[unit].Name, Units: []int{unit}})
		}
	}
	return out
}
