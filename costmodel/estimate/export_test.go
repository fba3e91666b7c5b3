package estimate

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Unprepared is Table for a quantised base without PEFT's preparation, so that the rest stays in 16
// bits; flat: NF4 without nested statistics.
func Unprepared(g *modelgraph.Graph, w costmodel.Workload, flat bool) (*costmodel.Table, error) {
	runtime, err := engine.Of(&w)
	if err != nil {
		return nil, err
	}
	rules := runtime.Rules(&w)
	rules.FlatNF4 = flat
	table := &costmodel.Table{Workload: w}
	return table, fill(table, g, &w, runtime, rules)
}

// CheckpointOnGPU0 is checkpointOnGPU0.
func CheckpointOnGPU0(ranks, checkpoint int64) int64 { return checkpointOnGPU0(ranks, checkpoint) }

// UnitNamed is the index of the unit of that name.
func UnitNamed(graph *modelgraph.Graph, name string) (int, bool) {
	i := slices.IndexFunc(graph.Units, func(unit modelgraph.Unit) bool { return unit.Name == name })
	return i, i >= 0
}

// ComparedBand is comparedBand.
func ComparedBand(family string, w *costmodel.Workload) (float64, bool) {
	return comparedBand(family, w)
}
