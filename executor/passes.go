package executor

import (
	"strconv"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// pass is a unit's run of a micro-batch in an instruction.
type pass struct {
	instr      int32
	device     int
	op         program.Op
	microBatch int64
	run        *bind.Run
	first      int // of the run's kernels among the instruction's
}

// passesOf returns a unit's forwards and decodes, in the order of instructions. It returns none for
// unit -1.
func (state *sessionState) passesOf(unit int) (passes []pass, err error) {
	prog := state.job.Program
	for index := range prog.Instrs {
		instr := &prog.Instrs[index]
		if instr.Op != program.Forward && instr.Op != program.Decode || unit < 0 || !state.hasUnit(instr.Routine, unit) {
			continue
		}
		bound, err := state.bound.Instr(int32(index))
		if err != nil {
			return nil, err
		}
		first := 0
		for number := range bound.Runs {
			if bound.Runs[number].Unit == unit {
				passes = append(passes, pass{int32(index), int(instr.Device), instr.Op, int64(max(0, instr.MicroBatch)), &bound.Runs[number], first})
			}
			first += len(bound.Runs[number].Kernels)
		}
	}
	return passes, nil
}

// hasUnit reports whether a routine has a unit.
func (state *sessionState) hasUnit(routine int32, unit int) bool {
	name := state.job.Graph.Units[unit].Name
	for _, other := range state.job.Program.Routines[routine].Units {
		if other == name {
			return true
		}
	}
	return false
}

// operand returns the first operand of a role in a kernel, nil if there is none.
func operand(kernel *recipe.Kernel, role string) *recipe.Operand {
	for i := range kernel.Operands {
		if kernel.Operands[i].Role == role {
			return &kernel.Operands[i]
		}
	}
	return nil
}

// find returns the place of the last operand of the pass's kernels that touches a tensor. known is
// false if none does.
func (pass *pass) find(code *recipe.Code, is func(tensor *recipe.Tensor) bool) (area bind.Area, known bool) {
	for i := range pass.run.Kernels {
		kernel := &pass.run.Kernels[i]
		for j := range kernel.Operands {
			if touched := &kernel.Operands[j]; is(&code.Tensors[touched.Tensor]) {
				area, known = pass.run.Area(touched), true
			}
		}
	}
	return area, known
}

// given returns the place of a result that the pass gives the caller.
func (run *running) given(pass *pass, name string) (bind.Area, bool) {
	return pass.find(run.job.Recipe.Units[pass.run.Unit].Code, func(tensor *recipe.Tensor) bool {
		return tensor.Class == "result" && tensor.Name == name
	})
}

// number is a constant of a kernel, or defaultValue if it has none.
func number(kernel *recipe.Kernel, name string, defaultValue float64) float64 {
	value, err := strconv.ParseFloat(kernel.Dim(name), 64)
	if err != nil {
		return defaultValue
	}
	return value
}
