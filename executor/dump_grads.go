package executor

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// dumpGrads takes every parameter's gradient when a device begins the optimizer's step. The
// gradients of all micro-batches are added up by then, and those of all uses of a tied weight are
// there.
func (run dumper) dumpGrads(path string) error {
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

// gradient is the gradient of a parameter: the sum over the areas of its uses.
type gradient struct {
	instr  int32
	device int
	name   string // the parameter's
	uses   []bind.Area
}

// gradients returns the gradients of the parameters that a unit owns. The squared norm of each goes
// into its row in module order.
func (run dumper) gradients(index int32, squares *bind.Run) (found []gradient) {
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
		one := gradient{instr: index, device: int(run.job.Program.Instrs[index].Device), name: names[operand(&squares.Kernels[number], "y").Row]}
		if len(squares.Uses) == 0 || len(squares.Uses[touched.Tensor]) == 0 {
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

// writeGradient adds up the uses, a row at a time.
func (run dumper) writeGradient(file *weights.File, of *gradient) error {
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
