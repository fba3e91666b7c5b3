package recipe

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// model is a graph under a workload, and the sizes that follow.
type model struct {
	relations
	train bool
	// dtype is the type of weights in use and of the hidden stream. gradients is the type of
	// weights' gradients and of moments. masters: the optimizer also has fp32 weights.
	dtype, gradients modelgraph.DType
	masters          bool
	// rows is the tokens of a micro-batch, sequences × seq.
	rows, sequences, seq int64
	width                int64 // of the stream
	generates            bool
	again                []bool // by unit: its forward runs again in backward
	moved                []bool // by unit: its saved tensors wait in host memory
	sets                 int64  // of these that a device has

	bytes float64 // of the units so far
	loose bool    // a layer was refused for its inputs
}

func (model *model) sizes() {
	workload := model.workload
	model.sequences, model.seq = workload.Batch/workload.MicroBatches, workload.Seq
	model.rows = model.sequences * model.seq
	model.generates = workload.NewTokens > 0
	model.dtype, model.gradients = modelgraph.BF16, modelgraph.BF16
	if workload.Precision == costmodel.FP32True {
		model.dtype = modelgraph.F32
	}
	if workload.Precision != costmodel.BF16True {
		model.gradients = modelgraph.F32
	}
	model.masters = workload.Precision == costmodel.BF16Mixed
}

// recomputes reports a block with a forward that runs again in backward ([costmodel.Workload.Recomputed]).
func (model *model) recomputes(unit int) bool {
	return model.train && model.again[unit]
}

// findBlocks finds these blocks, and those whose saved tensors leave for host memory.
func (model *model) findBlocks() error {
	model.again, model.moved = make([]bool, len(model.graph.Units)), make([]bool, len(model.graph.Units))
	var blocks []int
	for unit := range model.graph.Units {
		if len(model.graph.Units[unit].Exec) > 1 {
			blocks = append(blocks, unit)
		}
	}
	again, err := model.workload.Recomputed(len(blocks))
	if err != nil {
		return err
	}
	moved, err := model.workload.Offloads(len(blocks))
	if err != nil {
		return err
	}
	for i, unit := range blocks {
		model.again[unit], model.moved[unit] = again[i], model.train && moved[i]
	}
	// One set is of the block that runs, and the other of the one before it, which leaves, or of the
	// next. If both move, there are three.
	model.sets = 2
	for i := 1; i < len(moved); i++ {
		if moved[i-1] && moved[i] {
			model.sets = 3
		}
	}
	return nil
}

// streamWidth is the width of the first embedding of tokens.
func (model *model) streamWidth() int64 {
	for i := range model.graph.Layers {
		if op, ok := model.graph.Layers[i].Op.(modelgraph.Embedding); ok && model.graph.Layers[i].Stream.Kind == modelgraph.Text {
			return op.Dim
		}
	}
	return 0
}
