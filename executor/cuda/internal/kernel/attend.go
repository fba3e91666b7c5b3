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

// attend prepares attention's three kernels on tensor cores: attention, attention_dkv and
// attention_dq, whichever the call is for.
func attend(call *Call) (Launch, error) {
	table, err := attentions()
	if err != nil {
		return nil, err
	}
	all, err := attendance(table, call, call.Kernels.hopper, int64(call.Kernels.processors))
	if err != nil {
		return nil, err
	}
	for _, made := range all {
		image := func() (string, error) {
			text, err := made.kernel.PTX()
			return string(text), err
		}
		if made.function, err = call.Kernels.Entry(made.kernel.File, image, made.kernel.Name); err != nil {
			return nil, err
		}
		if err := made.function.Share(made.shape.Shared); err != nil {
			return nil, err
		}
	}
	return func(step *Step) error {
		for _, made := range all {
			if err := streamOf(step).Launch(made.function, made.shape, &made.arguments); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// attending is a kernel of attention with its blocks and its arguments.
type attending struct {
	kernel    *attention.Kernel
	function  *driver.Function
	shape     driver.Shape
	arguments driver.Arguments
}

// attendance chooses the kernels of a call, and packs their arguments. It is one kernel, or two for
// attention_dkv over several splits: the second adds up the splits' sums. These are in the
// workspace, which nothing else uses between the two.
func attendance(table *attention.Table, call *Call, hopper bool, processors int64) (all []*attending, err error) {
	heads, shared, seq := call.size("heads", 0), call.size("kv", 1), call.size("seq", 0)
	sequences, dim := call.size("sequences", 0), call.size("dim", 0)
	if heads < 1 || shared < 1 || heads%shared != 0 || seq < 1 {
		return nil, fmt.Errorf("heads=%d kv=%d seq=%d is no attention", heads, shared, seq)
	}
	dtype, aligned, err := lies(call, heads)
	if err != nil {
		return nil, err
	}
	reach := seq
	if window := call.size("window", 0); window > 0 {
		reach = min(reach, window)
	}
	values := map[string]int64{"group": heads / shared, "pairs": heads * sequences, "splits": 1, "rows": sequences * seq, "columns": shared * dim}
	for _, name := range []string{call.Kernel.Name, call.Kernel.Name + "_join"} {
		kernel, err := table.Choose(name, dtype, dim, reach, aligned, call.number("cap", 0) > 0, hopper)
		if err != nil {
			return nil, err
		}
		blocks := kernel.Grid(sequences, seq, heads, shared, dim)
		if name == "attention_dkv" {
			values["splits"] = kernel.Splits(sequences, seq, heads, shared, dim, call.Workspace.Bytes)
			blocks *= values["splits"]
		}
		if kernel.Plain() {
			blocks = min(blocks, processors)
		}
		if blocks > math.MaxInt32 {
			return nil, fmt.Errorf("%d blocks are more than a launch has", blocks)
		}
		made := &attending{kernel: kernel, shape: driver.Shape{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{kernel.Threads, 1, 1}, Shared: int(kernel.Shared)}}
		if err := made.pack(table.Arguments(kernel), call, values); err != nil {
			return nil, err
		}
		if all = append(all, made); values["splits"] == 1 {
			break
		}
	}
	return all, nil
}

// lies returns the type of a call's matrices, and whether all addresses and rows are
// multiples of 16 bytes. An address is one if the part's first column is: tensors begin at
// multiples of 256 bytes. Matrices with one number per row and head are fp32 without gaps,
// and may have any address.
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

// pack adds the arguments: addresses and strides of operands by their roles, and numbers by their
// names, from values or else from dims. A missing dim is 0, which means none to the kernels.
// Triton's own two addresses and, in inference, forward's lse are null.
func (made *attending) pack(wanted []attention.Argument, call *Call, values map[string]int64) error {
	for _, argument := range wanted {
		role, stride := strings.CutSuffix(argument.Name, "_stride")
		matrix := call.matrix(role)
		switch {
		case argument.Kind == 'f':
			made.arguments.Float32(float32(call.number(argument.Name, 0)))
		case argument.Kind == 'i':
			value, known := values[argument.Name]
			if stride && matrix != nil {
				value = matrix.Stride
			} else if !known {
				value = call.size(argument.Name, 0)
			}
			if value < 0 || value > math.MaxInt32 {
				return fmt.Errorf("%s=%d does not fit into 32 bits", argument.Name, value)
			}
			made.arguments.Int32(int32(value))
		case argument.Name == "parts":
			made.arguments.Address(call.Workspace.Address)
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
