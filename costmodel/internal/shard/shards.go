package shard

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Of cuts the parameters of a graph for a strategy that shards them; nil for
// another. Layers that are known by declared bytes alone have no parameters
// to list.
func Of(graph *modelgraph.Graph, workload *costmodel.Workload) *costmodel.Shards {
	if !workload.Strategy.Traits().Sharded || workload.ShardDegree < 1 {
		return nil
	}
	rule := RuleOf(workload.Strategy)
	shards := &costmodel.Shards{Degree: workload.ShardDegree, Units: []costmodel.ShardUnit{}, Params: []costmodel.ShardParam{}}
	for _, group := range gathered(graph, workload.Strategy) {
		unit := costmodel.ShardUnit{Name: group.Name, Params: []string{}}
		for _, index := range group.Units {
			for i := graph.Units[index].First; i < graph.Units[index].End; i++ {
				for _, param := range rule.params(&graph.Layers[i], workload.ShardDegree) {
					unit.Params = append(unit.Params, param.Name)
					unit.Numel += param.Numel
					unit.PaddedNumel += param.PaddedNumel
					shards.Params = append(shards.Params, param)
				}
			}
		}
		shards.Units = append(shards.Units, unit)
	}
	return shards
}

// params are those that a layer owns.
func (rule Rule) params(layer *modelgraph.Layer, degree int64) []costmodel.ShardParam {
	var out []costmodel.ShardParam
	for _, tensor := range layer.Owned() {
		out = append(out, costmodel.ShardParam{
			Name: modelgraph.FullName(layer.Name, tensor.Name), Numel: tensor.Numel(),
			PaddedNumel: degree * product(rule.Local(tensor.Shape, degree)), RankNumel: rule.Ranks(tensor.Shape, degree),
		})
	}
	return out
}

// gathered are the groups of a strategy. DeepSpeed wraps nothing: it fetches
// parameters module by module (partitioned_param_coordinator.py), so that
// each unit of the graph stands alone.
func gathered(graph *modelgraph.Graph, strategy costmodel.Strategy) []Group {
	if strategy.Traits().ByBlock {
		return Groups(graph)
	}
	var out []Group
	for unit := range graph.Units {
		if owns(graph, []int{unit}) {
			out = append(out, Group{Name: graph.Units[unit].Name, Units: []int{unit}})
		}
	}
	return out
}
