//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/source"
	"github.com/devmap-dev/devmap/modelgraph"
)

// line is a parsed line of launches.txt.
type line struct {
	function  string
	types     []string
	rule      rule
	counts    bool // its kernel counts in 32 bits
	sizes     []size
	clear     string
	arguments []argument
}

func lineOf(launch *source.Launch) (line, error) {
	read := line{function: launch.Function, types: launch.Types, rule: rules[launch.Rule], counts: counted[launch.Rule], clear: launch.Clear}
	if read.rule == nil {
		return line{}, fmt.Errorf("no rule is called %q", launch.Rule)
	}
	for _, word := range launch.Sizes {
		size, err := sizeOf(word)
		if err != nil {
			return line{}, err
		}
		read.sizes = append(read.sizes, size)
	}
	for _, word := range launch.Arguments {
		argument, err := argumentOf(word)
		if err != nil {
			return line{}, err
		}
		read.arguments = append(read.arguments, argument)
	}
	return read, nil
}

// packed is a launch that is ready for its step.
type packed struct {
	function  *driver.Function
	shape     driver.Shape
	arguments driver.Arguments
	// before is the grid of the previous launch.
	before uint32
	// clear is set to 0 before the launch; nil: nothing is.
	clear *Matrix
	late  []late
}

// late are arguments that change from step to step, and where they begin.
type late struct {
	at  int
	add func(step *Step, arguments *driver.Arguments)
}

// later adds arguments with their values before the first step, and records that they change.
func (launch *packed) later(add func(step *Step, arguments *driver.Arguments)) {
	launch.late = append(launch.late, late{launch.arguments.Bytes(), add})
	add(&Step{Number: 1, Optimizer: &executor.Optimizer{}}, &launch.arguments)
}

// pack packs a line for a call. It returns nil if the grid is empty.
func (line *line) pack(call *Call, before uint32) (*packed, error) {
	launch := &packed{before: before}
	var err error
	if launch.shape, err = line.shape(call); err != nil {
		return nil, err
	}
	if grid := launch.shape.Grid; grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
		return nil, nil
	}
	name := line.function
	for _, role := range line.types {
		matrix, err := call.need(role)
		if err != nil {
			return nil, err
		}
		name += suffixes[matrix.DType]
	}
	for _, argument := range line.arguments {
		if err := argument(call, launch); err != nil {
			return nil, err
		}
	}
	if line.clear != "" && call.Begins {
		if launch.clear, err = call.need(line.clear); err != nil {
			return nil, err
		}
		launch.clear = &Matrix{launch.clear.Address, launch.clear.DType, launch.clear.Rows, launch.clear.Columns, launch.clear.Stride}
	}
	launch.function, err = call.Kernels.Function(name)
	return launch, err
}

// suffixes are the types in the names of the sources.
var suffixes = map[modelgraph.DType]string{modelgraph.BF16: "_bf16", modelgraph.F32: "_f32"}

// give queues the launch on the step's stream.
func (launch *packed) give(step *Step) error {
	if launch.clear != nil {
		matrix := launch.clear
		if err := streamOf(step).Fill(matrix.Address, 0, matrix.Rows*matrix.Stride*matrix.DType.Bits()/8); err != nil {
			return err
		}
	}
	for i := range launch.late {
		launch.arguments.Again(launch.late[i].at, func(arguments *driver.Arguments) { launch.late[i].add(step, arguments) })
	}
	return streamOf(step).Launch(launch.function, launch.shape, &launch.arguments)
}
