package recipetest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/internal/recipetest"
	"github.com/devmap-dev/devmap/modelgraph"
)

// machine runs the kernels of a model in float64 from what their dims and
// operands say, and nothing else. Every tensor has memory of its own: that
// memory is shared soundly is shown by replay.
type machine struct {
	t     testing.TB
	graph *modelgraph.Graph
	model *recipe.Model
	// values are those of every unit's tensors.
	values [][][]float64
	step   int64 // tokens that were generated: decode's position is past + step
}

// newMachine has random weights, those that are tied the same.
func newMachine(tb testing.TB, graph *modelgraph.Graph, workload *costmodel.Workload, random *rand.Rand) *machine {
	tb.Helper()
	model, err := recipe.Of(graph, workload)
	if err != nil {
		tb.Fatal(err)
	}
	m := &machine{t: tb, graph: graph, model: model, values: make([][][]float64, len(model.Units))}
	for u := range model.Units {
		tensors := model.Units[u].Code.Tensors
		m.values[u] = make([][]float64, len(tensors))
		for i := range tensors {
			tensor := &tensors[i]
			m.values[u][i] = make([]float64, tensor.Rows*tensor.Columns)
			if tensor.Class == "weight" {
				for j := range m.values[u][i] {
					m.values[u][i][j] = 0.5 * random.NormFloat64()
				}
			}
		}
	}
	for u := range model.Units {
		for i, tensor := range model.Units[u].Code.Tensors {
			if tensor.Class == "weight" && tensor.Tie >= 0 {
				tie := model.Units[u].Tied[tensor.Tie]
				m.values[u][i] = m.named(tie.Owner, tie.Tensor, "")
			}
		}
	}
	return m
}

// named is a tensor by its full name, and the rest of the line.
func (m *machine) named(unit int, full, suffix string) []float64 {
	for i, tensor := range m.model.Units[unit].Code.Tensors {
		if modelgraph.FullName(m.model.Units[unit].Name, tensor.Name) == full+suffix || m.model.Units[unit].Name == full && tensor.Name == "self"+suffix {
			return m.values[unit][i]
		}
	}
	m.t.Fatalf("unit %q has no tensor %q", m.model.Units[unit].Name, full+suffix)
	return nil
}

// set gives tensors of a class values; name empty: whatever their names.
func (m *machine) set(unit int, class recipe.Class, name string, values []float64) {
	for i, tensor := range m.model.Units[unit].Code.Tensors {
		if tensor.Class == class && (name == "" || tensor.Name == name) && len(m.values[unit][i]) == len(values) {
			copy(m.values[unit][i], values)
		}
	}
}

// get is the tensor of a class, of so many rows.
func (m *machine) get(unit int, class recipe.Class, rows int64) []float64 {
	for i, tensor := range m.model.Units[unit].Code.Tensors {
		if tensor.Class == class && tensor.Rows == rows {
			return m.values[unit][i]
		}
	}
	return nil
}

// run runs kernels of a unit.
func (m *machine) run(unit int, kernels []recipe.Kernel) {
	for i := range kernels {
		call := &recipetest.Call{Kernel: &kernels[i], Past: m.step, Begins: true}
		for _, operand := range kernels[i].Operands {
			tensor := &m.model.Units[unit].Code.Tensors[operand.Tensor]
			part := recipetest.Matrix{Values: m.values[unit][operand.Tensor], Rows: tensor.Rows, Columns: tensor.Columns, Stride: tensor.Columns}
			if operand.Rows > 0 {
				part.Rows, part.Columns, part.First = operand.Rows, operand.Columns, operand.Row*tensor.Columns+operand.Column
			}
			call.Operands = append(call.Operands, part)
		}
		call.Run(m.t)
	}
}

// stream runs the units one after another, each on what the one before made.
func (m *machine) stream(pass func(unit int, code *recipe.Code) []recipe.Kernel, rows int64) {
	var flow []float64
	for u := range m.model.Units {
		if m.model.Units[u].Passes {
			continue
		}
		if flow != nil {
			m.set(u, "input", "", flow)
		}
		m.run(u, pass(u, m.model.Units[u].Code))
		if out := m.get(u, "output", rows); out != nil {
			flow = out
		}
	}
}

// forward runs the model on ids, and is its loss if it is trained.
func (m *machine) forward(workload *costmodel.Workload, ids []float64) float64 {
	last := len(m.model.Units) - 1
	for u := range m.model.Units {
		m.set(u, "feed", "ids", ids)
		m.set(u, "feed", "labels", ids)
	}
	m.stream(func(_ int, code *recipe.Code) []recipe.Kernel { return code.Forward.Kernels }, workload.Batch*workload.Seq)
	if losses := m.get(last, "result", 1); losses != nil && workload.Mode == costmodel.Train {
		return losses[0]
	}
	return 0
}

// backward runs it back.
func (m *machine) backward(workload *costmodel.Workload) {
	rows := workload.Batch * workload.Seq
	var flow []float64
	for u := len(m.model.Units) - 1; u >= 0; u-- {
		unit := &m.model.Units[u]
		if unit.Passes {
			continue
		}
		if unit.Remade > 0 {
			for i, tensor := range unit.Code.Tensors {
				if tensor.Class == "saved" {
					clear(m.values[u][i])
				}
			}
			m.run(u, unit.Code.Recompute.Kernels)
		}
		if flow != nil {
			m.set(u, "output.gradient", "", flow)
		}
		m.run(u, unit.Code.Backward.Kernels)
		if out := m.get(u, "input.gradient", rows); out != nil {
			flow = out
		}
	}
}
