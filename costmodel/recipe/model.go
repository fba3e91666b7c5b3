package recipe

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Model is what the engine runs of a model under a workload.
type Model struct {
	Units    []Unit // in the graph's order, which is that of the stream
	Warnings []costmodel.Message
}

// Unit is a wrap unit: what it takes of an arena, and what runs of it. Where
// it passes, Code has its weights alone.
type Unit struct {
	Name string
	costmodel.Regions
	Code *Code

	bytes float64 // of all tensors
}

// model is a graph under a workload, and the sizes that follow.
type model struct {
	graph    *modelgraph.Graph
	workload *costmodel.Workload
	train    bool
	// dtype is the type of weights in use and of the hidden stream, gradients
	// that of weights' gradients and of the optimizer's moments; masters: the
	// optimizer has weights in fp32 besides.
	dtype, gradients modelgraph.DType
	masters          bool
	// rows is the tokens of a micro-batch, sequences × seq.
	rows, sequences, seq int64
	width                int64 // of the stream
	generates            bool

	owners map[string]int // units by the full names of parameters that they own
	read   []bool         // by layer: another one reads it
	tied   map[string]bool
	bytes  float64 // of the units so far
}

// Of writes the code of every unit. What the engine cannot run is refused: the
// error is a [*costmodel.FieldError] where a field of the workload is at fault,
// and else names the layer. It costs microseconds a unit that is unlike those
// before it, and a comparison for every other.
func Of(graph *modelgraph.Graph, workload *costmodel.Workload) (*Model, error) {
	m := &model{graph: graph, workload: workload, train: workload.Mode == costmodel.Train}
	if err := m.check(); err != nil {
		return nil, err
	}
	m.sizes()
	m.width = m.streamWidth()
	all := make([][]step, len(graph.Units))
	if workload.Mode != costmodel.Load {
		var err error
		if all, err = m.steps(); err != nil {
			return nil, err
		}
	}
	out := &Model{Units: make([]Unit, len(graph.Units))}
	for i := range graph.Units {
		unit := &out.Units[i]
		unit.Name = graph.Units[i].Name
		if like := m.alike(all, i); like >= 0 {
			name := unit.Name
			*unit = out.Units[like]
			unit.Name = name
		} else if err := m.write(unit, i, all[i]); err != nil {
			return nil, err
		}
		if err := m.bound(unit); err != nil {
			return nil, err
		}
	}
	out.Warnings = m.warn()
	if err := m.known(); err != nil {
		return nil, err
	}
	return out, nil
}

func (m *model) sizes() {
	workload := m.workload
	m.sequences, m.seq = workload.Batch/workload.MicroBatches, workload.Seq
	m.rows = m.sequences * m.seq
	m.generates = workload.NewTokens > 0
	m.dtype, m.gradients = modelgraph.BF16, modelgraph.BF16
	switch workload.Precision {
	case costmodel.FP32True:
		m.dtype, m.gradients = modelgraph.F32, modelgraph.F32
	case costmodel.BF16Mixed:
		m.gradients, m.masters = modelgraph.F32, true
	}
}

// recomputes reports a unit whose forward runs again in backward: a block, as
// in [costmodel.RecomputeFull].
func (m *model) recomputes(unit int) bool {
	return m.train && m.workload.Recompute == costmodel.RecomputeFull && len(m.graph.Units[unit].Exec) > 1
}

// streamWidth is that of the first embedding of tokens.
func (m *model) streamWidth() int64 {
	for i := range m.graph.Layers {
		if op, ok := m.graph.Layers[i].Op.(modelgraph.Embedding); ok && m.graph.Layers[i].Stream.Kind == modelgraph.Text {
			return op.Dim
		}
	}
	return 0
}

// bound refuses models whose bytes, with every micro-batch's at once, would
// overflow a sum.
func (m *model) bound(unit *Unit) error {
	if m.bytes += unit.bytes * float64(m.workload.MicroBatches); m.bytes > 1<<60 {
		return refuse("batch", m.workload.Batch, "%d tokens in %d micro-batches would take more than 2^60 bytes up to unit %q", m.rows*m.workload.MicroBatches, m.workload.MicroBatches, unit.Name)
	}
	return nil
}
