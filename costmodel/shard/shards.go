package shard

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Shards is a plan's list of what each rank holds. All counts are elements.
type Shards struct {
	// Degree is the number of ranks that a parameter is cut over. GPU d holds
	// part d mod Degree: under HSDP the GPUs of a group follow each other,
	// and every group holds all parts (init_device_mesh, replicas × shards).
	Degree int64   `json:"degree"`
	Units  []Unit  `json:"units"`
	Params []Param `json:"params"`
}

// Unit is what is gathered at once.
type Unit struct {
	Name        string   `json:"name"`
	Params      []string `json:"params"` // in the order they are reduced in
	Numel       int64    `json:"numel"`
	PaddedNumel int64    `json:"padded_numel"`
}

// Param is one parameter. A tied one stands once, under the name that owns it.
type Param struct {
	Name string `json:"name"`
	// Numel are its elements, PaddedNumel those that all ranks store together.
	Numel       int64 `json:"numel"`
	PaddedNumel int64 `json:"padded_numel"`
	// RankNumel are the elements each rank of a group holds, without padding.
	RankNumel []int64 `json:"rank_numel"`
}

// Of cuts the parameters of g for a strategy that shards them; nil for
// another. Layers that are known by declared bytes alone have no parameters
// to list.
func Of(g *modelgraph.Graph, w *costmodel.Workload) *Shards {
	if !w.Strategy.Traits().Sharded || w.ShardDegree < 1 {
		return nil
	}
	rule := RuleOf(w.Strategy)
	s := &Shards{Degree: w.ShardDegree, Units: []Unit{}, Params: []Param{}}
	for _, group := range gathered(g, w.Strategy) {
		unit := Unit{Name: group.Name, Params: []string{}}
		for _, u := range group.Units {
			for i := g.Units[u].First; i < g.Units[u].End; i++ {
				s.layer(&unit, &g.Layers[i], rule)
			}
		}
		s.Units = append(s.Units, unit)
	}
	return s
}

func (s *Shards) layer(unit *Unit, l *modelgraph.Layer, rule Rule) {
	for j := range l.Params {
		t := &l.Params[j]
		if t.Tied() {
			continue // where it is owned
		}
		p := Param{
			Name: modelgraph.FullName(l.Name, t.Name), Numel: t.Numel(),
			PaddedNumel: s.Degree * product(rule.Local(t.Shape, s.Degree)), RankNumel: rule.Ranks(t.Shape, s.Degree),
		}
		unit.Params = append(unit.Params, p.Name)
		unit.Numel += p.Numel
		unit.PaddedNumel += p.PaddedNumel
		s.Params = append(s.Params, p)
	}
}

// gathered are the groups of a strategy. DeepSpeed wraps nothing: it fetches
// parameters module by module (partitioned_param_coordinator.py), so that
// each unit of the graph stands alone.
func gathered(g *modelgraph.Graph, s costmodel.Strategy) []Group {
	if s.Traits().ByBlock {
		return Groups(g)
	}
	var out []Group
	for u := range g.Units {
		if owns(g, []int{u}) {
			out = append(out, Group{Name: g.Units[u].Name, Units: []int{u}})
		}
	}
	return out
}
