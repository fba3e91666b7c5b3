package recipe

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// writer writes the code of one unit: forward a step at a time, then backward in the opposite order.
type writer struct {
	parameters
	backs []func() // backward of the steps so far
}

// assembler collects a unit's tensors, and the kernels of a pass.
type assembler struct {
	*model
	regions costmodel.Regions
	code    Code
	names   map[string]int // tensors by name
	copies  map[string]int // how many tensors asked for a name
	bytes   float64        // of all tensors

	pass    string
	routine *Routine
	count   int64 // rows of the stream in this pass
	// stream is the hidden state so far, flow its gradient on the way back; -1 before the first step.
	stream, flow int
}

// add adds a tensor; a name that is taken gets a number.
func (asm *assembler) add(tensor Tensor) int {
	base := tensor.Name
	for {
		if _, taken := asm.names[tensor.Name]; !taken {
			break
		}
		asm.copies[base]++
		tensor.Name = base + "." + strconv.Itoa(asm.copies[base]+1)
	}
	asm.names[tensor.Name] = len(asm.code.Tensors)
	asm.bytes += float64(bytesOf(tensor.DType)) * float64(tensor.Rows) * float64(tensor.Columns)
	asm.code.Tensors = append(asm.code.Tensors, tensor)
	return len(asm.code.Tensors) - 1
}

// temporary is a tensor of the pass that is being written.
func (asm *assembler) temporary(name string, dtype modelgraph.DType, rows, columns int64) int {
	return asm.add(Tensor{Name: name, Class: classTemporary, Pass: asm.pass, DType: dtype, Rows: rows, Columns: columns, Tie: -1})
}

// saved is a tensor of forward that backward reads; temporary if nothing is trained.
func (asm *assembler) saved(name string, dtype modelgraph.DType, rows, columns int64) int {
	if !asm.train {
		return asm.temporary(name, dtype, rows, columns)
	}
	return asm.place(&asm.regions.Saved, Tensor{Name: name, Class: classSaved, DType: dtype, Rows: rows, Columns: columns})
}

// place adds a tensor at the end of its block; size is the block's size so far.
func (asm *assembler) place(size *int64, tensor Tensor) int {
	tensor.Offset, tensor.Tie = *size, -1
	*size += tensor.bytes()
	return asm.add(tensor)
}

// message is a tensor of the hidden stream: of all tokens, or of one a sequence.
func (asm *assembler) message(class Class) int {
	name := string(class)
	if asm.pass == passDecode {
		name = "token." + name
	}
	if index, ok := asm.names[name]; ok {
		return index
	}
	return asm.add(Tensor{Name: name, Class: class, DType: asm.dtype, Rows: asm.count, Columns: asm.width, Tie: -1})
}

// The operands of kernels.
func in(role string, tensor int) Operand { return Operand{Role: role, Mode: modeRead, Tensor: tensor} }

func out(role string, tensor int) Operand {
	return Operand{Role: role, Mode: modeWrite, Tensor: tensor}
}

func both(role string, tensor int) Operand {
	return Operand{Role: role, Mode: modeUpdate, Tensor: tensor}
}

func gather(tensor int) Operand {
	return Operand{Role: "d", Mode: modeGather, Tensor: tensor}
}

// as is the operand in a role, mode in a mode.
func (operand Operand) as(role string) Operand {
	operand.Role = role
	return operand
}

func (operand Operand) mode(mode byte) Operand {
	operand.Mode = mode
	return operand
}

// columns is a stretch of the operand's columns.
func (asm *assembler) columns(operand Operand, first, count int64) Operand {
	operand.Row, operand.Rows, operand.Column, operand.Columns = 0, asm.code.Tensors[operand.Tensor].Rows, first, count
	return operand
}

// rowsOf is a stretch of its rows.
func (asm *assembler) rowsOf(operand Operand, first, count int64) Operand {
	operand.Row, operand.Rows, operand.Column, operand.Columns = first, count, 0, asm.code.Tensors[operand.Tensor].Columns
	return operand
}

// kernel appends a kernel to the pass. It moves its operands once each way.
func (asm *assembler) kernel(name string, dims []Dim, operands ...Operand) *Kernel {
	kernel := Kernel{Name: name, Dims: dims, Operands: operands}
	for i := range operands {
		size := float64(asm.sizeOf(&operands[i]))
		if operands[i].Mode == modeUpdate || operands[i].Mode == modeGather {
			size *= 2
		}
		kernel.Bytes += size
	}
	asm.routine.Kernels = append(asm.routine.Kernels, kernel)
	return &asm.routine.Kernels[len(asm.routine.Kernels)-1]
}

// sizeOf is the bytes of an operand.
func (asm *assembler) sizeOf(operand *Operand) int64 {
	tensor := &asm.code.Tensors[operand.Tensor]
	rows, columns := tensor.Rows, tensor.Columns
	if operand.Rows > 0 {
		rows, columns = operand.Rows, operand.Columns
	}
	if tensor.Parts {
		rows /= asm.workload.MicroBatches
	}
	return rows * columns * bytesOf(tensor.DType)
}

func size(name string, value int64) Dim     { return Dim{name, strconv.FormatInt(value, 10)} }
func word(name, value string) Dim           { return Dim{name, value} }
func number(name string, value float64) Dim { return Dim{name, fmt.Sprint(value)} }

// shared is a tensor that several passes name; size is as in place.
func (asm *assembler) shared(size *int64, tensor Tensor) int {
	if index, ok := asm.names[tensor.Name]; ok {
		return index
	}
	return asm.place(size, tensor)
}

// below is a layer's path below its unit, with a dot after it if there is one.
func (params *parameters) below(layer int) string {
	name := strings.TrimPrefix(strings.TrimPrefix(params.graph.Layers[layer].Name, params.graph.Units[params.unit].Name), ".")
	if name != "" {
		name += "."
	}
	return name
}
