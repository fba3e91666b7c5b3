package recipe

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// write writes the code of unit index.
func (model *model) write(unit *Unit, index int, steps []step) error {
	writer := &writer{parameters: parameters{
		assembler: assembler{model: model, names: make(map[string]int), copies: make(map[string]int)}, unit: index, silent: len(steps) == 0,
	}}
	if err := writer.layout(); err != nil {
		return err
	}
	writer.regions.Passes = writer.silent && model.workload.Mode != costmodel.Load
	if model.workload.Mode != costmodel.Load && !writer.silent {
		if err := writer.run(steps); err != nil {
			return err
		}
	}
	unit.bytes = writer.bytes
	unit.Regions, unit.Code = writer.regions, &writer.code
	return nil
}

// run writes the passes.
func (writer *writer) run(steps []step) error {
	writer.pass, writer.routine, writer.count = passForward, &writer.code.Forward, writer.rows
	if err := writer.forward(steps); err != nil {
		return err
	}
	if writer.generates {
		writer.pass, writer.routine, writer.count = passDecode, &writer.code.Decode, writer.sequences
		if err := writer.forward(steps); err != nil {
			return err
		}
	}
	if writer.train {
		writer.pass, writer.routine, writer.count = passBackward, &writer.code.Backward, writer.rows
		writer.flow = -1
		for _, back := range slices.Backward(writer.backs) {
			back()
		}
		writer.update()
	}
	writer.measure()
	return writer.unread()
}

// forward writes a pass of the stream through the unit.
func (writer *writer) forward(steps []step) error {
	writer.stream = -1
	for i, next := range steps {
		var err error
		last := i == len(steps)-1
		switch next.kind {
		case embedStep, addStep:
			err = writer.embedding(next.core, last)
		case branchStep:
			err = writer.branch(next, last)
		case normStep:
			err = writer.alone(next.core, last)
		case linearStep:
			err = writer.linear(next.core, last)
		case poolStep:
			err = writer.pool(next.core)
		case headStep:
			err = writer.head(next.core)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
