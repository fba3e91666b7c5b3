package compile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
)

// ErrOrder is a given order of actions without a valid program: its stages wait for each other, or
// it is not for these stages.
var ErrOrder = errors.New("the order of actions has no sound program")

// slotted compiles with as many slots a channel as the engine has, and proves the program. Under a
// given order, stages may wait for each other if channels are short. Then the program gets more
// slots, up to one for each micro-batch: with these no stage waits to send.
func slotted(given bool, workload *costmodel.Workload, compiled func(slots int) (*program.Program, error)) (*program.Program, error) {
	for slots := costmodel.StageRulesOf(workload.Runtime).Slots; ; slots *= 2 {
		out, err := compiled(int(slots))
		if err != nil {
			return nil, err
		}
		report := out.Check()
		switch err := report.Err(); {
		case err == nil:
			return out, nil
		case !given:
			return nil, fmt.Errorf("the compiled program is not sound, which is an error of devmap:\n%w", err)
		case slots >= workload.MicroBatches || !deadlocks(report):
			return nil, fmt.Errorf("%w:\n%w", ErrOrder, err)
		}
	}
}

// deadlocks reports whether instructions wait for each other in a cycle.
func deadlocks(report *program.Report) bool {
	return slices.ContainsFunc(report.Faults, func(fault program.Fault) bool { return fault.Rule == "V6" })
}
