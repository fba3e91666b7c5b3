package bind

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// unit is a unit of the model in the program.
type unit struct {
	name     string // as programs write it
	device   int32  // None if the program does not have it
	params   []param
	byTensor []int // the parameter that a tensor is of, -1 for others
	norms    int64 // the row of its first parameter's squared norm
}

// param is a parameter of a unit: its own, or its use of another's. Its tensors are indexes in the
// unit's code, -1 if there is none.
type param struct {
	full                    string // the framework's name
	tie                     int    // index in Bound.ties, -1 if it is not tied
	owned                   bool
	value, gradient, master int
	mean, square            int
}

// index resolves the names in the program.
func (bound *Bound) index() error {
	prog := bound.Program
	names := make([]string, len(bound.Graph.Units))
	byGraph := make(map[string]int32, len(names))
	for index := range names {
		names[index] = bound.Graph.Units[index].Name
		byGraph[names[index]] = int32(index)
	}
	units := make(map[string]int32, len(names))
	bound.units = make([]unit, len(names))
	norms := int64(0)
	for index, name := range program.UnitNames(names) {
		units[name] = int32(index)
		unit := &bound.units[index]
		unit.name, unit.device, unit.norms = name, program.None, norms
		norms += bound.Recipe.Units[index].Tensors
		if err := bound.parameters(index); err != nil {
			return err
		}
	}
	bound.named = make(map[place]int32, len(prog.Buffers))
	bound.kinds = make([]kind, len(prog.Buffers))
	for index := range prog.Buffers {
		buffer := &prog.Buffers[index]
		bound.named[place{buffer.Device, buffer.Name}] = int32(index)
		bound.kinds[index] = bound.kindOf(buffer, units)
	}
	for index := range prog.Routines {
		unit, known := units[prog.Routines[index].Name]
		if !known {
			return fmt.Errorf("no unit is called %q, as a routine is", prog.Routines[index].Name)
		}
		bound.routines = append(bound.routines, int(unit))
	}
	bound.settle(byGraph)
	bound.tie()
	return nil
}

// settle finds the device of every unit: that of its routine, or else that of its own weights.
func (bound *Bound) settle(byGraph map[string]int32) {
	prog := bound.Program
	for index := range prog.Instrs {
		if instr := &prog.Instrs[index]; instr.Op.Runs() && instr.Routine >= 0 {
			for _, name := range prog.Routines[instr.Routine].Units {
				if unit, known := byGraph[name]; known {
					bound.units[unit].device = instr.Device
				}
			}
		}
	}
	for index := range prog.Buffers {
		kind := bound.kinds[index]
		if kind.what != ofWeights || kind.of == program.None {
			continue
		}
		if unit := &bound.units[kind.of]; unit.device == program.None && prog.Buffers[index].Bytes == bound.Recipe.Units[kind.of].Weights {
			unit.device = prog.Buffers[index].Device
		}
	}
}

// parameters finds a unit's parameters among the tensors of its code. They come first, in module
// order. Each is followed by its gradient and what the optimizer keeps.
func (bound *Bound) parameters(index int) error {
	unit, code := &bound.units[index], bound.Recipe.Units[index].Code
	unit.byTensor = make([]int, len(code.Tensors))
	for tensor := range code.Tensors {
		unit.byTensor[tensor] = -1
		switch code.Tensors[tensor].Class {
		case weightClass:
			unit.params = append(unit.params, param{tie: -1, owned: code.Tensors[tensor].Tie < 0, value: tensor, gradient: -1, master: -1, mean: -1, square: -1})
		case gradientClass, masterClass, stateClass:
			if len(unit.params) == 0 {
				return fmt.Errorf("unit %q: tensor %q comes before the weight that it is of", bound.Graph.Units[index].Name, code.Tensors[tensor].Name)
			}
		default:
			continue
		}
		unit.byTensor[tensor] = len(unit.params) - 1
		unit.params[len(unit.params)-1].take(tensor, code.Tensors[tensor].Class)
	}
	number := 0
	graph := &bound.Graph.Units[index]
	for layer := graph.First; layer < graph.End; layer++ {
		layer := &bound.Graph.Layers[layer]
		for j := range layer.Params {
			if number < len(unit.params) {
				unit.params[number].full = modelgraph.FullName(layer.Name, layer.Params[j].Name)
			}
			number++
		}
	}
	if number != len(unit.params) {
		return fmt.Errorf("unit %q has %d parameters, and %d in the recipe", graph.Name, number, len(unit.params))
	}
	return nil
}

func (param *param) take(tensor int, class recipe.Class) {
	switch {
	case class == gradientClass:
		param.gradient = tensor
	case class == masterClass:
		param.master = tensor
	case class == stateClass && param.mean < 0:
		param.mean = tensor
	case class == stateClass:
		param.square = tensor
	}
}
