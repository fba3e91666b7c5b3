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
	Name  string // of the tensor; of a gradient's norm that of the gradient
}

// Made is what the run passes on, and what it keeps, weights that were stepped too:
// they may be saved next. Gradients are seen by their norms, which every step makes
// of all of them. Each area is there once, as rows may be wider: in the order in
// which kernels first write them.
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

// looked reports a tensor of numbers that others read.
func looked(tensor *recipe.Tensor) bool {
	if tensor.DType != modelgraph.BF16 && tensor.DType != modelgraph.F32 {
		return false
	}
	switch tensor.Class {
	case "output", "input.gradient", "saved", "result", "norms", "weight", "master", "state":
		return true
	}
	return false
}
