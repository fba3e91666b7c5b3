// Package bind finds the place in an arena of every tensor of every instruction. A program names
// the buffers that an instruction touches, the recipe the tensors of its kernels. This package maps
// one to the other, for all backends, and checks the result against the program.
package bind

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Bound is a program with its recipe.
type Bound struct {
	Graph    *modelgraph.Graph
	Workload *costmodel.Workload
	Recipe   *recipe.Model
	Program  *program.Program

	units    []unit
	ties     []tie
	routines []int  // the units that run their kernels
	kinds    []kind // of buffers
	named    map[place]int32
	// past is how many tokens were generated before each instruction, nil if none are.
	past []int32
}

// place is a name on a device.
type place struct {
	device int32
	name   string
}

// New binds every instruction of a program that was compiled from the graph under the workload. An
// error names an instruction and a tensor. The tensor has no place in the buffers that the
// instruction accesses, or their mode does not allow what the kernel does. The program then does
// not match the recipe. New takes as long as a step without its arithmetic.
func New(graph *modelgraph.Graph, work *costmodel.Workload, model *recipe.Model, prog *program.Program) (*Bound, error) {
	if len(graph.Units) != len(model.Units) {
		return nil, fmt.Errorf("a recipe of %d units for a model of %d", len(model.Units), len(graph.Units))
	}
	bound := &Bound{Graph: graph, Workload: work, Recipe: model, Program: prog}
	if err := bound.index(); err != nil {
		return nil, err
	}
	bound.count()
	for index := range prog.Instrs {
		if _, err := bound.Instr(int32(index)); err != nil {
			return nil, err
		}
	}
	if err := bound.messages(); err != nil {
		return nil, err
	}
	return bound, nil
}

// Instr returns what an instruction does.
func (bound *Bound) Instr(index int32) (Instr, error) {
	frame := bound.frame(index)
	if err := frame.bind(); err != nil {
		return Instr{}, fmt.Errorf("%s %v: %w", bound.Program.Place(index), bound.Program.Instrs[index].Op, err)
	}
	return frame.out, nil
}

// Past returns how many tokens were generated before an instruction ([Run.Past]).
func (bound *Bound) Past(index int32) int64 {
	if bound.past == nil {
		return 0
	}
	return int64(bound.past[index])
}

// parts returns the number of micro-batches, by which a tensor of all of them is divided.
func (bound *Bound) parts() int64 { return max(1, bound.Workload.MicroBatches) }

// count notes how many tokens were generated before each decode: a micro-batch
// runs through a routine once for each.
func (bound *Bound) count() {
	type pass struct{ routine, microBatch int32 }
	rounds := make(map[pass]int32)
	for index := range bound.Program.Instrs {
		instr := &bound.Program.Instrs[index]
		if instr.Op != program.Decode {
			continue
		}
		if bound.past == nil {
			bound.past = make([]int32, len(bound.Program.Instrs))
		}
		key := pass{instr.Routine, instr.MicroBatch}
		bound.past[index] = rounds[key]
		rounds[key]++
	}
}
