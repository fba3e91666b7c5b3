package bind

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Made is an area of numbers that a run's kernels write and others read.
type Made struct {
	Area
	Class recipe.Class
	Name  string // of the tensor; for a gradient's norm, the gradient's name
}

// Made returns the numbers that the run passes to others or keeps, also updated weights, which may
// be saved next. Gradients are represented by their norms, which every step computes for all of
// them. Each area occurs once, in the order in which kernels first write them.
func (run *Run) Made() []Made {
	var all []Made
	for i := range run.Kernels {
		operands := run.Kernels[i].Operands
		for j := range operands {
			tensor := &run.code.Tensors[operands[j].Tensor]
			if operands[j].Mode == reads || !looked(tensor) {
				continue
			}
			made := Made{run.Area(&operands[j]), tensor.Class, tensor.Name}
			if slices.ContainsFunc(all, func(one Made) bool { return one.Area == made.Area }) {
				continue
			}
			if tensor.Class == normsClass { // a number of each gradient
				made.Name = run.code.Tensors[operands[0].Tensor].Name
			}
			all = append(all, made)
		}
	}
	return all
}

// looked reports whether a tensor has numbers that others read.
func looked(tensor *recipe.Tensor) bool {
	if tensor.DType != modelgraph.BF16 && tensor.DType != modelgraph.F32 {
		return false
	}
	switch tensor.Class {
	case "output", "input.gradient", "saved", "late", "result", "norms", "weight", "master", "state":
		return true
	}
	return false
}
