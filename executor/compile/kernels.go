package compile

import (
	"github.com/devmap-dev/devmap/costmodel/recipe"
)

// kernels gives every routine the lines of its units' code. Equal units share
// one code, and so one text.
func (compiler *compiler) kernels(model *recipe.Model) {
	if len(compiler.out.Routines) == 0 {
		return
	}
	texts := make(map[*recipe.Code][]string)
	for number := range compiler.stages {
		for at := range compiler.stages[number].routines {
			routine := &compiler.stages[number].routines[at]
			unit := &model.Units[routine.unit]
			if unit.Passes {
				continue
			}
			if _, known := texts[unit.Code]; !known {
				texts[unit.Code] = unit.Code.Lines()
			}
			compiler.out.Routines[routine.index].Kernels = texts[unit.Code]
		}
	}
}
