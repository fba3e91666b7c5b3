//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/devmap-dev/devmap/executor/cuda/internal/attention"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/modelgraph"
)

// attentions is the table of attention's kernels, read once in a process.
var attentions = sync.OnceValues(attention.Load)

// attend is attention's three kernels on tensor cores: attention, attention_dkv and
// attention_dq, whichever the call is of.
func attend(call *Call) (Launch, error) {
	table, err := attentions()
	if err != nil {
		return nil, err
	}
	made, err := attendance(table, call, call.Kernels.hopper)
	if err != nil {
		return nil, err
	}
	image := func() (string, error) {
		text, err := made.kernel.PTX()
		return string(text), err
	}
	function, err := call.Kernels.Entry(made.kernel.File, image, made.kernel.Name)
	if err != nil {
		return nil, err
	}
	if err := function.Share(made.shape.Shared); err != nil {
		return nil, err
	}
	return func(step *Step) error { return step.Stream.Launch(function, made.shape, &made.arguments) }, nil
}

// attending is a kernel of attention with its blocks and its arguments.
type attending struct {
	kernel    *attention.Kernel
	shape     driver.Shape
	arguments driver.Arguments
}

// attendance chooses the kernel of a call, and packs what it is given.
func attendance(table *attention.Table, call *Call, hopper bool) (*attending, error) {
	heads, shared, seq := call.size("heads", 0), call.size("kv", 1), call.size("seq", 0)
	if heads < 1 || shared < 1 || heads%shared != 0 || seq < 1 {
		return nil, fmt.Errorf("heads=%d kv=%d seq=%d is no attention", heads, shared, seq)
	}
	dtype, aligned, err := lies(call, heads)
	if err != nil {
		return nil, err
	}
	kernel, err := table.Choose(call.Kernel.Name, dtype, call.size("dim", 0), aligned, hopper)
	if err != nil {
		return nil, err
	}
	blocks := kernel.Grid(call.size("sequences", 0), seq, heads, shared)
	if blocks > math.MaxInt32 {
		return nil, fmt.Errorf("%d blocks are more than a launch has", blocks)
	}
	made := &attending{kernel: kernel, shape: driver.Shape{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{kernel.Threads, 1, 1}, Shared: int(kernel.Shared)}}
	return made, made.pack(table.Arguments[kernel.Name], call)
}

// lies says of which type a call's matrices are, and whether all addresses and rows
// are multiples of 16 bytes. Of an address that follows from the part's first
// column alone: tensors begin at multiples of 256 bytes. What is a number a row and
// head is in fp32, without gaps, and any of its addresses will do.
func lies(call *Call, heads int64) (dtype string, aligned bool, err error) {
	aligned = true
	for i := range call.Kernel.Operands {
		role, matrix := call.Kernel.Operands[i].Role, &call.Operands[i]
		if role == "lse" || role == "delta" {
			if matrix.DType != modelgraph.F32 || matrix.Stride != heads {
				return "", false, fmt.Errorf("%s is %v, rows %d apart", role, matrix, matrix.Stride)
			}
			continue
		}
		name := map[modelgraph.DType]string{modelgraph.BF16: "bf16", modelgraph.F32: "fp32"}[matrix.DType]
		if name == "" || dtype != "" && name != dtype {
			return "", false, fmt.Errorf("%s is %v", role, matrix)
		}
		dtype = name
		aligned = aligned && matrix.Address%16 == 0 && matrix.Stride*matrix.DType.Bits()/8%16 == 0
	}
	return dtype, aligned, nil
}

// pack adds the arguments: addresses and strides of operands by their roles, and
// dims by their names. A dim that is not given is 0, which the kernels take for
// none; null are Triton's own two addresses, and forward's lse in inference.
func (made *attending) pack(wanted []attention.Argument, call *Call) error {
	for _, argument := range wanted {
		role, stride := strings.CutSuffix(argument.Name, "_stride")
		matrix := call.matrix(role)
		switch {
		case argument.Kind == 'f':
			made.arguments.Float32(float32(call.number(argument.Name, 0)))
		case argument.Kind == 'i':
			value := call.size(argument.Name, 0)
			if argument.Name == "group" {
				value = call.size("heads", 1) / call.size("kv", 1)
			}
			if stride && matrix != nil {
				value = matrix.Stride
			}
			if value < 0 || value > math.MaxInt32 {
				return fmt.Errorf("%s=%d does not fit into 32 bits", argument.Name, value)
			}
			made.arguments.Int32(int32(value))
		case matrix != nil:
			made.arguments.Address(matrix.Address)
		case argument.Name == "scratch", argument.Name == "profile", argument.Name == "lse" && call.Kernel.Name == "attention":
			made.arguments.Address(0)
		default:
			return fmt.Errorf("it has no operand %q", argument.Name)
		}
	}
	return nil
}
