package executor

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// dump begins the files of tensors that are asked for, and says when their
// values are there: a tap reads them on their device, a row or a stretch at a
// time, and writes them to their place in the file.
func (run *running) dump() error {
	run.taps = make(map[Tap]func() error)
	asked := &run.settings.Dump
	for _, kind := range []struct {
		file  string
		begin func(file string) error
	}{{asked.Logits, run.dumpLogits}, {asked.Hidden, run.dumpHidden}, {asked.Grads, run.dumpGrads}} {
		if kind.file == "" {
			continue
		}
		if err := kind.begin(kind.file); err != nil {
			return err
		}
	}
	return nil
}

// tap adds what happens at a moment behind what happens there already.
func (run *running) tap(at Tap, then func() error) {
	if before := run.taps[at]; before != nil {
		run.taps[at] = func() error {
			if err := before(); err != nil {
				return err
			}
			return then()
		}
		return
	}
	run.taps[at] = then
}

// matrix is one tensor of a dumped file, rows × columns values.
type matrix struct {
	*running
	file    *weights.File
	name    string
	columns int64
}

// tensor begins a file of one tensor [batch, seq, columns].
func (run *running) tensor(path, name string, seq, columns int64) (*matrix, error) {
	entry := weights.Entry{Name: name, DType: modelgraph.F32, Shape: []int64{run.job.Workload.Batch, seq, columns}}
	file, err := run.create(weights.Create(path, nil, []weights.Entry{entry}))
	return &matrix{run, file, name, columns}, err
}

// copy writes columns [0, count) of an area into those from column on, its rows
// into those from row on, each value as change makes it.
func (matrix *matrix) copy(device int, area *bind.Area, row, column, count int64, change func(float32) float32) error {
	values, raw := make([]float32, count), make([]byte, 4*count)
	for from := range area.Rows {
		if err := matrix.values(device, area, from, 0, values, raw); err != nil {
			return err
		}
		for i, value := range values {
			if change != nil {
				value = change(value)
			}
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(value))
		}
		if err := matrix.file.WriteAt(matrix.name, 4*((row+from)*matrix.columns+column), raw); err != nil {
			return err
		}
	}
	return nil
}

// dumpHidden takes what the head is given, before it begins.
func (run *running) dumpHidden(file string) error {
	var out *matrix
	code := run.job.Recipe.Units[run.job.head()].Code
	for i := range run.passes {
		pass := &run.passes[i]
		if pass.op != program.Forward {
			continue
		}
		input, known := pass.find(code, func(tensor *recipe.Tensor) bool { return tensor.Class == "input" })
		if !known {
			continue
		}
		if out == nil {
			var err error
			if out, err = run.tensor(file, "hidden", run.job.Workload.Seq, input.Columns); err != nil {
				return err
			}
		}
		run.tap(Tap{pass.instr, pass.first}, func() error {
			return out.copy(pass.device, &input, pass.microBatch*input.Rows, 0, input.Columns, nil)
		})
	}
	return nil
}

// dumpLogits takes logits when they are made: in training a part of the
// vocabulary at a time, each before the kernel that reads it, which caps them
// itself.
func (run *running) dumpLogits(file string) error {
	op, _ := run.job.headOp()
	seq := run.job.Workload.Seq
	if run.job.Workload.NewTokens > 0 {
		seq = 1
	}
	out, err := run.tensor(file, "logits", seq, op.Vocab)
	if err != nil {
		return err
	}
	for i := range run.passes {
		pass := &run.passes[i]
		if pass.op != program.Forward {
			continue
		}
		if logits, known := run.given(pass, "logits"); known {
			run.tap(Tap{pass.instr, pass.first + len(pass.run.Kernels)}, func() error {
				return out.copy(pass.device, &logits, pass.microBatch*logits.Rows, 0, op.Vocab, nil)
			})
			continue
		}
		out.parts(pass)
	}
	return nil
}

// parts takes the logits of training.
func (matrix *matrix) parts(pass *pass) {
	for at := range pass.run.Kernels {
		kernel := &pass.run.Kernels[at]
		if kernel.Name != "softmax_sums" {
			continue
		}
		part := pass.run.Area(operand(kernel, "x"))
		first, limit := int64(number(kernel, "first", 0)), number(kernel, "cap", 0)
		matrix.tap(Tap{pass.instr, pass.first + at}, func() error {
			return matrix.copy(pass.device, &part, pass.microBatch*part.Rows, first, part.Columns, func(value float32) float32 {
				if limit == 0 {
					return value
				}
				return capped(value, limit, part.DType)
			})
		})
	}
}

// capped is limit·tanh(value/limit), rounded to the type that logits have.
func capped(value float32, limit float64, dtype modelgraph.DType) float32 {
	bits := math.Float32bits(float32(limit * math.Tanh(float64(value)/limit)))
	if dtype == modelgraph.BF16 {
		bits = (bits + 0x7fff + bits>>16&1) &^ 0xffff // to the nearest, ties to even
	}
	return math.Float32frombits(bits)
}

// headOp is the op of the model's head, known where it has one.
func (job *Job) headOp() (op modelgraph.Head, known bool) {
	unit := job.head()
	if unit < 0 {
		return op, false
	}
	for _, layer := range job.Graph.Units[unit].Exec {
		if op, is := job.Graph.Layers[layer].Op.(modelgraph.Head); is {
			return op, true
		}
	}
	return op, false
}

// dumpGrads takes every parameter's gradient where a device begins the
// optimizer's step: those of all micro-batches are added up by then, and of a
// tied weight those of all its uses are there.
func (run *running) dumpGrads(path string) error {
	var found []gradient
	prog := run.job.Program
	for index := range prog.Instrs {
		if prog.Instrs[index].Op != program.Step {
			continue
		}
		bound, err := run.bound.Instr(int32(index))
		if err != nil {
			return err
		}
		if bound.Norms == nil {
			continue
		}
		for number := range bound.Runs {
			found = append(found, run.gradients(int32(index), &bound.Runs[number])...)
		}
	}
	entries := make([]weights.Entry, 0, len(found))
	for _, entry := range weights.Parameters(run.job.Graph, modelgraph.F32) {
		if slices.ContainsFunc(found, func(one gradient) bool { return one.name == entry.Name }) {
			entries = append(entries, entry)
		}
	}
	file, err := run.create(weights.Create(path, nil, entries))
	if err != nil {
		return err
	}
	for i := range found {
		run.tap(Tap{found[i].instr, 0}, func() error { return run.writeGradient(file, &found[i]) })
	}
	return nil
}

// gradient is that of a parameter, the sum over the areas of its uses.
type gradient struct {
	instr  int32
	device int
	name   string // the parameter's
	uses   []bind.Area
}

// gradients are those of the parameters that a unit owns, of which its squared
// norms are taken in module order.
func (run *running) gradients(index int32, squares *bind.Run) (found []gradient) {
	var names []string
	unit := &run.job.Graph.Units[squares.Unit]
	for layer := unit.First; layer < unit.End; layer++ {
		for _, tensor := range run.job.Graph.Layers[layer].Owned() {
			names = append(names, modelgraph.FullName(run.job.Graph.Layers[layer].Name, tensor.Name))
		}
	}
	for number := range squares.Kernels {
		touched := operand(&squares.Kernels[number], "x")
		area := squares.Area(touched)
		one := gradient{instr: index, device: int(run.job.Program.Instrs[index].Device), name: names[number]}
		if squares.Uses == nil || squares.Uses[touched.Tensor] == nil {
			one.uses = []bind.Area{area}
		} else {
			for _, offset := range squares.Uses[touched.Tensor] {
				area.Offset = offset
				one.uses = append(one.uses, area)
			}
		}
		found = append(found, one)
	}
	return found
}

// writeGradient adds the uses up, a row at a time.
func (run *running) writeGradient(file *weights.File, of *gradient) error {
	const most = 1 << 18 // values
	shape := of.uses[0]
	width := min(shape.Columns, most)
	sum, values, raw := make([]float32, width), make([]float32, width), make([]byte, 4*width)
	for row := range shape.Rows {
		for column := int64(0); column < shape.Columns; column += width {
			count := min(width, shape.Columns-column)
			clear(sum)
			for i := range of.uses {
				if err := run.values(of.device, &of.uses[i], row, column, values[:count], raw); err != nil {
					return err
				}
				for j, value := range values[:count] {
					sum[j] += value
				}
			}
			for j, value := range sum[:count] {
				binary.LittleEndian.PutUint32(raw[4*j:], math.Float32bits(value))
			}
			if err := file.WriteAt(of.name, 4*(row*shape.Columns+column), raw[:4*count]); err != nil {
				return err
			}
		}
	}
	return nil
}
