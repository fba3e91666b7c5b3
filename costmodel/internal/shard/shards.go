package shard

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Of cuts the parameters of a graph for a strategy that shards them; nil for
// another. Layers that are known by declared bytes alone have no parameters
// to list.
func Of(graph *modelgraph.Graph, w *costmodel.Workload) *costmodel.Shards {
	if !w.Strategy.Traits().Sharded || w.ShardDegree < 1 {
		return nil
	}
	rule := RuleOf(w.Strategy)
	shards := &costmodel.Shards{Degree: w.ShardDegree, Units: []costmodel.ShardUnit{}, Params: []costmodel.ShardParam{}}
	for _, group := range gathered(graph, w.Strategy) {
		unit := costmodel.ShardUnit{Name: group.Name, Params: []string{}}
		for _, u := range group.Units {
			for i := graph.Units[u].First; i < graph.Units[u].End; i++ {
				for _, param := range rule.params(&graph.Layers[i], w.ShardDegree) {
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
func (r Rule) params(layer *modelgraph.Layer, degree int64) []costmodel.ShardParam {
	var out []costmodel.ShardParam
	for _, tensor := range layer.Owned() {
		out = append(out, costmodel.ShardParam{
			Name: modelgraph.FullName(layer.Name, tensor.Name), Numel: tensor.Numel(),
			PaddedNumel: degree * product(r.Local(tensor.Shape, degree)), RankNumel: r.Ranks(tensor.Shape, degree),
		})
	}
	return out
}

// gathered are the groups of a strategy. DeepSpeed wraps nothing: it fetches
// parameters module by module (partitioned_param_coordinator.py), so that
// each unit of the graph stands alone.
func gathered(graph *modelgraph.Graph, s costmodel.Strategy) []Group {
	if s.Traits().ByBlock {
		return Groups(graph)
	}
	var out []Group
	for u := range graph.Units {
		if owns(graph, []int{u}) {
			out = append(out, Group{Name: graph.Units[u].Name, Units: []int{u}})
		}
	}
	return out
}
