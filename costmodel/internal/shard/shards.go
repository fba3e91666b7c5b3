package shard

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Of cuts the parameters of a graph for a strategy that shards them; nil for
// another. Layers that are known by declared bytes alone have no parameters
// to list.
func Of(graph *modelgraph.Graph, workload *costmodel.Workload) *costmodel.Shards {
	if !workload.Strategy.Traits().Sharded || workload.ShardDegree < 1 {
		return nil
	}
	if workload.Runtime == value.JAX {
		return arrays(graph, workload.ShardDegree)
	}
	rule := RuleOf(workload)
	shards := &costmodel.Shards{Degree: workload.ShardDegree}
	for _, group := range gathered(graph, workload) {
		unit := added(&shards.Units)
		unit.Name = group.Name
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
	}
	return shards
}

// added is one more element of a list.
func added[E any](list *[]E) *E {
	var element E
	*list = append(*list, element)
	return &(*list)[len(*list)-1]
}

// gathered are the groups of a strategy. DeepSpeed wraps nothing: it fetches
// parameters module by module (partitioned_param_coordinator.py), so that each
// unit of the graph is a group of its own.
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
