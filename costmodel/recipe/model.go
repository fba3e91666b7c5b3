package recipe

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Model is the engine's code of a model under a workload.
type Model struct {
	Units    []Unit // in the graph's and the stream's order
	Warnings []costmodel.Message
}

// Unit is a wrap unit: its bytes in an arena, and its code; only weights if it passes.
type Unit struct {
	Name string
	costmodel.Regions
	Code *Code

	bytes float64 // of all tensors
}

// Of writes the code of every unit. It refuses what the engine cannot run: the error is a
// [*costmodel.FieldError] if a field of the workload is at fault, and else names the layer. A unit
// equal to an earlier one costs only a comparison.
func Of(graph *modelgraph.Graph, workload *costmodel.Workload) (*Model, error) {
	model := &model{relations: relations{graph: graph, workload: workload}, train: workload.Mode == costmodel.Train}
	if err := model.check(); err != nil {
		return nil, err
	}
	if err := model.findBlocks(); err != nil {
		return nil, err
	}
	model.sizes()
	model.width = model.streamWidth()
	all := make([][]step, len(graph.Units))
	if workload.Mode != costmodel.Load {
		var err error
		if all, err = model.steps(); err != nil {
			return nil, model.worse(err)
		}
	}
	out := &Model{Units: make([]Unit, len(graph.Units))}
	for i := range graph.Units {
		unit := &out.Units[i]
		unit.Name = graph.Units[i].Name
		if like := model.sameCode(all, i); like >= 0 {
			name := unit.Name
			*unit = out.Units[like]
			unit.Name = name
		} else if err := model.write(unit, i, all[i]); err != nil {
			return nil, err
		}
		if unit.Moved = 0; model.moved[i] && unit.Input > 0 {
			unit.Moved = model.sets
		}
		if err := model.bound(unit); err != nil {
			return nil, err
		}
	}
	out.Warnings = model.warn()
	if err := model.known(); err != nil {
		return nil, err
	}
	return out, nil
}

// bound refuses models if the bytes of all micro-batches at once would overflow a sum.
func (model *model) bound(unit *Unit) error {
	if model.bytes += unit.bytes * float64(model.workload.MicroBatches); model.bytes > 1<<60 {
		return refuse("batch", model.workload.Batch, "%d tokens in %d micro-batches would take more than 2^60 bytes up to unit %q", model.rows*model.workload.MicroBatches, model.workload.MicroBatches, unit.Name)
	}
	return nil
}
