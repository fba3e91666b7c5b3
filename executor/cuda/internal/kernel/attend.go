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

// attend prepares attention on tensor cores, forward or backward.
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
		for place, tiles := range made.tiles {
			if err := made.arguments.Tiles(place, tiles); err != nil {
				return nil, err
			}
		}
	}
	return func(step *Step) error {
		for _, made := range all {
			if made.cleared > 0 {
				if err := streamOf(step).Fill(made.clears, 0, made.cleared); err != nil {
					return err
				}
			}
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
	tiles     map[int]*driver.Tiles // by their places in the arguments
	clears    driver.Address        // so many bytes become 0 first
	cleared   int64
}

// attendance chooses the kernels of a call, and packs their arguments. Forward is one kernel. Backward
// is attention_backward, or else attention_dkv and attention_dq. Over several splits, another one
// adds up the splits' sums of keys and values. These are in the workspace, which nothing else uses
// between the two.
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
	choose := func(name string) (*attention.Kernel, error) {
		return table.Choose(name, dtype, dim, reach, aligned, call.number("cap", 0) > 0, hopper)
	}
	names := []string{call.Kernel.Name}
	if call.Kernel.Name == "attention_backward" {
		names = []string{"attention_dkv", "attention_dkv_join", "attention_dq"}
		if _, err := choose(call.Kernel.Name); err == nil && call.matrix("sums") != nil {
			names = []string{call.Kernel.Name, "attention_dkv_join"}
		}
	}
	for i, name := range names {
		if name == "attention_dkv_join" && values["splits"] == 1 {
			continue
		}
		kernel, err := choose(name)
		if err != nil {
			return nil, err
		}
		blocks := kernel.Grid(sequences, seq, heads, shared, dim)
		if i == 0 && len(names) > 1 {
			values["splits"] = kernel.Splits(sequences, seq, heads, shared, dim, call.Workspace.Bytes)
			blocks *= values["splits"]
		}
		if kernel.Plain() {
			blocks = min(blocks, processors)
		}
		if blocks > math.MaxInt32 {
			return nil, fmt.Errorf("%d blocks are more than a launch has", blocks)
		}
		made := &attending{kernel: kernel, tiles: make(map[int]*driver.Tiles), shape: driver.Shape{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{kernel.Threads, 1, 1}, Shared: int(kernel.Shared)}}
		if err := made.pack(table.Arguments(kernel), call, values); err != nil {
			return nil, err
		}
		if name == "attention_backward" {
			made.shape.Together = true // a block waits for shares of others
			// A row of sums is a block of queries, and behind all rows each has the number of its shares.
			sums, queries := call.matrix("sums"), kernel.Box("q")
			if sums.Rows != heads*sequences*over(seq, queries) || sums.Columns != queries*dim+1 {
				return nil, fmt.Errorf("sums is %v, and %s has blocks of %d queries", sums, kernel.File, queries)
			}
			made.cleared = 4 * sums.Rows
			made.clears = sums.Address + driver.Address(4*sums.Rows*(sums.Columns-1))
		}
		all = append(all, made)
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
		if columns := map[string]int64{"lse": heads, "delta": heads, "sums": matrix.Columns}[role]; columns > 0 {
			if matrix.DType != modelgraph.F32 || matrix.Stride != columns {
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
		case argument.Kind == 'm' && matrix != nil:
			dim := call.size("dim", 0)
			made.tiles[made.arguments.ReserveTiles()] = &driver.Tiles{At: matrix.Address, Width: dim, Heads: matrix.Columns / dim, Rows: call.size("seq", 0), Sequences: call.size("sequences", 0), Stride: matrix.Stride, Box: made.kernel.Box(role)}
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
