package recipe_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/backendtest"
)

// memory is the tensor that wrote each byte of a unit's buffers in a replay of its kernels, by its
// index + 1. It does not use the planner of offsets.
type memory struct {
	code    *recipe.Code
	micro   int64
	size    map[string]int64
	buffers map[string][]int
	// written counts how often each byte of a gradient was written.
	written map[int][]int
	faults  []string
}

// buffer names a tensor's buffer. together: input and output share one buffer.
func (m *memory) buffer(tensor *recipe.Tensor, together bool) string {
	switch tensor.Class {
	case "temporary":
		return tensor.Pass
	case "weight":
		if tensor.Tie >= 0 {
			return fmt.Sprint("tied", tensor.Tie)
		}
	case "output":
		if together {
			return "input"
		}
	case "input.gradient":
		if together {
			return "output.gradient"
		}
	}
	return string(tensor.Class)
}

func width(tensor *recipe.Tensor) int64 { return tensor.DType.Bits() / 8 }

// bytes calls f for every byte of an operand.
func (m *memory) bytes(operand *recipe.Operand, f func(at int64)) {
	tensor := &m.code.Tensors[operand.Tensor]
	row, rows, column, columns := operand.Row, operand.Rows, operand.Column, operand.Columns
	if rows == 0 {
		row, rows, column, columns = 0, tensor.Rows, 0, tensor.Columns
	}
	if tensor.Parts {
		rows /= m.micro
	}
	if row+rows > tensor.Rows || column+columns > tensor.Columns || row < 0 || column < 0 || rows < 1 || columns < 1 {
		m.fault("operand %s of %s is outside it", operand.Role, tensor.Name)
		return
	}
	each := width(tensor)
	for i := row; i < row+rows; i++ {
		for j := column * each; j < (column+columns)*each; j++ {
			f(i*tensor.Columns*each + j)
		}
	}
}

func (m *memory) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// cells are the bytes of the buffer that a tensor lies in, from its offset.
func (m *memory) cells(tensor *recipe.Tensor, together bool) []int {
	name := m.buffer(tensor, together)
	size, limited := m.size[name]
	if end := tensor.Offset + tensor.Bytes(); limited && end > size {
		m.fault("%s ends at %d of %s, which has %d", tensor.Name, end, name, size)
	} else if int64(len(m.buffers[name])) < end {
		m.buffers[name] = append(m.buffers[name], make([]int, end-int64(len(m.buffers[name])))...)
	}
	if tensor.Offset%costmodel.RegionAlign != 0 {
		m.fault("%s begins at %d", tensor.Name, tensor.Offset)
	}
	return m.buffers[name][tensor.Offset:]
}

// there makes tensors of some classes be there that kernels touch.
func (m *memory) there(together bool, kernels []recipe.Kernel, classes ...recipe.Class) {
	touched := make(map[int]bool)
	for i := range kernels {
		for j := range kernels[i].Operands {
			touched[kernels[i].Operands[j].Tensor] = true
		}
	}
	for i := range m.code.Tensors {
		if tensor := &m.code.Tensors[i]; touched[i] && slices.Contains(classes, tensor.Class) {
			cells := m.cells(tensor, together)
			for at := range tensor.Rows * tensor.Columns * width(tensor) {
				cells[at] = i + 1
			}
		}
	}
}

// run replays kernels and checks that every read finds its own tensor.
func (m *memory) run(what string, kernels []recipe.Kernel, together bool) {
	for i := range kernels {
		kernel := &kernels[i]
		for j := range kernel.Operands {
			operand := &kernel.Operands[j]
			if operand.Mode != '>' && operand.Mode != '*' {
				m.read(fmt.Sprintf("%s: kernel %d %s", what, i, kernel.Name), operand, together)
			}
		}
		for j := range kernel.Operands {
			operand := &kernel.Operands[j]
			if operand.Mode == ' ' {
				continue
			}
			tensor := &m.code.Tensors[operand.Tensor]
			cells := m.cells(tensor, together)
			m.bytes(operand, func(at int64) {
				cells[at] = operand.Tensor + 1
				if operand.Mode == '*' {
					m.count(operand.Tensor, at)
				}
			})
		}
	}
}

func (m *memory) count(tensor int, at int64) {
	if m.written[tensor] == nil {
		m.written[tensor] = make([]int, m.code.Tensors[tensor].Bytes())
	}
	m.written[tensor][at]++
}

func (m *memory) read(where string, operand *recipe.Operand, together bool) {
	tensor := &m.code.Tensors[operand.Tensor]
	cells := m.cells(tensor, together)
	bad := int64(-1)
	m.bytes(operand, func(at int64) {
		if bad < 0 && cells[at] != operand.Tensor+1 {
			bad = at
		}
	})
	if bad < 0 {
		return
	}
	content := "nothing"
	if other := cells[bad]; other > 0 {
		content = m.code.Tensors[other-1].Name
	}
	m.fault("%s reads %s, and byte %d of it holds %s", where, tensor.Name, bad, content)
}

// whole checks that every tensor of a class was written as a whole.
func (m *memory) whole(what string, class recipe.Class, together bool) {
	for i := range m.code.Tensors {
		if tensor := &m.code.Tensors[i]; tensor.Class == class {
			m.read(what+": in the end", &recipe.Operand{Tensor: i}, together)
		}
	}
}

// drop makes buffers hold nothing.
func (m *memory) drop(names ...string) {
	for _, name := range names {
		clear(m.buffers[name])
	}
}

// judge replays all that runs of a unit.
func judge(unit *recipe.Unit, workload *costmodel.Workload, together bool) []string {
	if unit.Passes {
		return nil
	}
	m := &memory{code: unit.Code, micro: workload.MicroBatches, buffers: make(map[string][]int), written: make(map[int][]int)}
	regions := &unit.Regions
	m.size = map[string]int64{
		"weight": regions.Weights, "gradient": regions.Grads, "master": regions.Master, "state": regions.State,
		"cache": regions.Cache, "feed": regions.Feed, "result": regions.Result, "saved": regions.Saved + regions.Remade,
		"forward": regions.Forward - regions.Remade, "backward": regions.Backward - regions.Remade, "decode": regions.Decode,
		"late": regions.Late, "pending": regions.Pending, "backward-input": regions.Backward - regions.Remade, "backward-weight": regions.Learn,
	}
	if workload.Mode == costmodel.Train && regions.Input > 0 {
		together = false // what comes in is kept, and has a place of its own
	}
	code := unit.Code
	m.there(together, code.Forward.Kernels, "weight", "feed", "input", "cache")
	m.run("forward", code.Forward.Kernels, together)
	if workload.Mode != costmodel.Train {
		m.drop("forward", "input", "output")
		m.there(together, code.Decode.Kernels, "input", "token")
		m.run("decode", code.Decode.Kernels, together)
		return m.faults
	}
	m.train(unit, together)
	return m.faults
}

// learn runs the second half of a backward, after the first half's memory is gone.
func (m *memory) learn(unit *recipe.Unit, together bool) {
	names := []string{"saved", "backward-input", "input.gradient", "output.gradient"}
	if !unit.KeepsInput {
		names = append(names, "input")
	}
	before := make(map[string][]int)
	for _, name := range names {
		before[name] = slices.Clone(m.buffers[name])
	}
	m.drop(names...)
	m.run("backward-weight", unit.Code.Learn.Kernels, together)
	for _, name := range names {
		copy(m.buffers[name], before[name])
	}
}

func (m *memory) train(unit *recipe.Unit, together bool) {
	m.whole("forward", "output", together)
	m.whole("forward", "saved", together)
	m.whole("forward", "late", together)
	m.drop("forward", "output")
	if unit.Remade > 0 {
		m.drop("saved")
		m.run("recompute", unit.Code.Recompute.Kernels, together)
		m.whole("recompute", "saved", together)
		m.drop("forward")
	}
	if unit.Input == 0 {
		m.drop("input")
	}
	for _, same := range []bool{false, true} {
		m.drop("backward", "backward-input", "backward-weight", "pending", "gradient", "input.gradient", "output.gradient")
		clear(m.written)
		m.there(same, unit.Code.Backward.Kernels, "output.gradient")
		m.run("backward", unit.Code.Backward.Kernels, same)
		m.whole("backward", "input.gradient", same)
		if unit.Learns {
			m.learn(unit, same)
		}
		m.whole("backward", "gradient", same)
		for tensor, counts := range m.written {
			size := m.code.Tensors[tensor].Rows * m.code.Tensors[tensor].Columns * width(&m.code.Tensors[tensor])
			if slices.Min(counts[:size]) != 1 || slices.Max(counts[:size]) != 1 {
				m.fault("gradient %s is not written exactly once", m.code.Tensors[tensor].Name)
			}
		}
	}
	m.there(false, unit.Code.Step.Kernels, "weight", "master", "state", "total")
	m.run("norms", unit.Code.Norms.Kernels, false)
	m.whole("norms", "norms", false)
	m.run("step", unit.Code.Step.Kernels, false)
	m.whole("step", "weight", false)
}

// TestReplay: in every family and workload, kernels read intact tensors, live temporaries never
// overlap, backward finds its inputs, and every gradient is written once a micro-batch, whether the
// stream is changed in place or not.
func TestReplay(t *testing.T) {
	for _, family := range slices.Sorted(maps.Keys(backendtest.Families)) {
		graph := small(t, family)
		for name, workload := range smallWorkloads() {
			if backendtest.Forwards(family) && name != "infer" {
				continue
			}
			model, err := recipe.Of(graph, &workload)
			if err != nil {
				t.Errorf("%s, %s: %v", family, name, err)
				continue
			}
			for i := range model.Units {
				for _, together := range []bool{false, true} {
					for _, fault := range judge(&model.Units[i], &workload, together) {
						t.Errorf("%s, %s, %s (in place: %v): %s", family, name, model.Units[i].Name, together, fault)
					}
				}
			}
		}
	}
}
