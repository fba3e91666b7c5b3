package planner

import (
	"math"
	"reflect"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// repeats is a model with at most two equal units in a row, for bounds of many forms. times
// counts the units that each one represents.
type repeats struct {
	graph *modelgraph.Graph
	times []float64
}

// allUnits is a model without omissions.
func allUnits(graph *modelgraph.Graph) *repeats {
	return &repeats{graph, slices.Repeat([]float64{1}, len(graph.Units))}
}

// shortened leaves out units that equal the two before them. Layers that read such a unit
// read the last unit that remains.
func shortened(graph *modelgraph.Graph) *repeats {
	out, layers, replaced := &repeats{}, []modelgraph.Layer(nil), make(map[string]string)
	for index := range graph.Units {
		of := graph.Layers[graph.Units[index].First:graph.Units[index].End]
		if index > 1 && equalUnits(graph, index, index-1) && equalUnits(graph, index, index-2) {
			for i, staying := range layers[len(layers)-len(of):] {
				replaced[of[i].Name] = staying.Name
			}
			out.times[len(out.times)-1]++
			continue
		}
		out.times, layers = append(out.times, 1), append(layers, of...)
	}
	for i := range layers {
		inputs := slices.Clone(layers[i].Inputs)
		for j, name := range inputs {
			if staying, ok := replaced[name]; ok {
				inputs[j] = staying
			}
		}
		layers[i].Inputs = inputs
	}
	short, err := modelgraph.New(graph.Name, layers, graph.Ties)
	if err != nil || len(short.Units) != len(out.times) {
		return allUnits(graph)
	}
	short.Source, short.Family, short.Class, short.Config, short.DType, short.Quantized = graph.Source, graph.Family, graph.Class, graph.Config, graph.DType, graph.Quantized
	short.MaxSeq, short.Taken, short.Transformers = graph.MaxSeq, graph.Taken, graph.Transformers
	out.graph = short
	return out
}

// equalUnits reports units whose layers differ in names alone.
func equalUnits(graph *modelgraph.Graph, one, other int) bool {
	nameless := func(layer modelgraph.Layer) modelgraph.Layer {
		layer.Name, layer.Unit, layer.Inputs, layer.InputLayers, layer.UnitIndex = "", "", nil, nil, 0
		if layer.Learned.Alone { // not for the stages of several GPUs
			layer.Learned.Source, layer.Learned.Layer = nil, 0
		}
		layer.Params = slices.Clone(layer.Params)
		for i := range layer.Params {
			layer.Params[i].Parts = nil
		}
		return layer
	}
	a, b := &graph.Units[one], &graph.Units[other]
	return slices.EqualFunc(graph.Layers[a.First:a.End], graph.Layers[b.First:b.End], func(a, b modelgraph.Layer) bool {
		return reflect.DeepEqual(nameless(a), nameless(b))
	})
}

// leastOf bounds the value of any cut of a table from below; +Inf: no cut fits. The
// slowest of p stages runs m micro-batches, and the first of these runs through the
// others, too: (m + p − 1)/p of all work. Interleaved stages do not wait for whole ones.
func leastOf(table *costmodel.Table, topology *costmodel.Topology, model *repeats, timed bool) float64 {
	folded := table.Folded(topology)
	stages := float64(len(folded.Devices))
	share := leastShare(table, folded, model)
	switch {
	case !timed:
		return share
	case share > 1:
		return math.Inf(1)
	}
	var seconds float64
	for unit := range table.Units {
		of := steptime.Unit(table, folded, 0, unit)
		seconds += model.times[unit] * (of.Forward + of.Backward)
	}
	runs := float64(max(1, table.Workload.MicroBatches))
	if table.Workload.Schedule != costmodel.Interleaved {
		runs += stages - 1
	}
	return seconds * runs / stages * (1 - instance.Tolerance)
}

// leastShare is a share that some stage of any cut has at least: the mean of the stages,
// that of the largest unit, or that with which stages in a row hold all units.
func leastShare(table *costmodel.Table, folded *costmodel.Topology, model *repeats) float64 {
	var all float64
	var largest, budget int64
	overhead := int64(math.MaxInt64)
	for i := range table.Units {
		unit := &table.Units[i]
		bytes := unit.Params + unit.Buffers + unit.OptimizerState + unit.ResidentGrads
		if !unit.Recompute {
			for k := range unit.Layers {
				bytes += unit.Layers[k].Saved
			}
		}
		all, largest = all+model.times[i]*float64(bytes), max(largest, bytes)
	}
	for i := range folded.Devices {
		budget = max(budget, folded.Devices[i].Budget())
		overhead = min(overhead, table.Overhead(i, &folded.Devices[i]))
	}
	least := (max(all/float64(len(folded.Devices)), float64(largest), aloneNeeds(table, folded, model)) + float64(overhead)) / float64(budget)
	if table.Workload.Schedule == costmodel.Interleaved {
		return least
	}
	fills := newFilling(table, len(folded.Devices), model)
	if fills.hold(least*float64(budget) - float64(overhead)) {
		return least
	}
	low, high := least, 2*least
	for ; !fills.hold(high*float64(budget) - float64(overhead)); high *= 2 {
		low = high
	}
	for range 20 {
		if middle := (low + high) / 2; fills.hold(middle*float64(budget) - float64(overhead)) {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// aloneNeeds is what the only stage needs at least: the model's peak, and what the units
// that are left out keep throughout. It is 0 if there are more stages.
func aloneNeeds(table *costmodel.Table, folded *costmodel.Topology, model *repeats) float64 {
	if len(folded.Devices) > 1 {
		return 0
	}
	all := timeline.Rank{Schedule: costmodel.NewSchedule(&table.Workload, 1, 1), Chunks: []costmodel.Interval{{End: len(table.Units)}}}
	need := float64(timeline.NewRanks(table).Peak(all, table.Workspaces*folded.Devices[0].WorkspaceBytes))
	for i := range table.Units {
		unit := &table.Units[i]
		need += (model.times[i] - 1) * float64(unit.Params+unit.Buffers+unit.OptimizerState+unit.ResidentGrads)
	}
	return need
}

// filling is what units take of any stage: throughout, and for each micro-batch in
// flight. Before a stage's first backward, in-flight micro-batches are as many as stages
// from it to the last, or all of them (Narayanan et al., SC 2021, §2.2).
type filling struct {
	*repeats
	static, saved []float64
	stages, runs  int
}

func newFilling(table *costmodel.Table, stages int, model *repeats) *filling {
	out := &filling{repeats: model, stages: stages, runs: int(max(1, table.Workload.MicroBatches))}
	for i := range table.Units {
		unit := &table.Units[i]
		out.static = append(out.static, float64(unit.Params+unit.Buffers+unit.OptimizerState+unit.ResidentGrads))
		out.saved = append(out.saved, float64(max(0, timeline.Of(unit).Saved-unit.CheckpointedOutput-unit.Entry))) // the rest may be a message
	}
	return out
}

// hold reports that stages with so many bytes each hold all units in their order.
func (fills *filling) hold(bytes float64) bool {
	unit, left := 0, fills.times[0]
	for stage := range fills.stages {
		depth := float64(min(fills.runs, fills.stages-stage))
		for free := bytes; ; {
			each := fills.static[unit] + depth*fills.saved[unit]
			taken := left
			if each > 0 {
				taken = min(left, math.Floor(free/each))
			}
			free, left = free-taken*each, left-taken
			if left > 0 {
				break
			}
			unit++
			if unit == len(fills.times) {
				return true
			}
			left = fills.times[unit]
		}
	}
	return false
}
