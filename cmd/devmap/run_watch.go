package main

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// watch lets say tell how far the run is: what is loaded, then the steps, with
// the last loss or the ids that come.
func (one *planRun) watch(say func(string)) {
	watch, steps := &one.settings.Watch, one.settings.Steps
	watch.Loaded = func(bytes, of int64) {
		say(fmt.Sprintf("loading: %v of %v", costmodel.Bytes(bytes), costmodel.Bytes(of)))
	}
	watch.Step = func(step *executor.StepResult) {
		text := fmt.Sprintf("step %d of %d: %s", step.Number, steps, show.Seconds(step.Times.Step.Seconds()))
		if one.job.Workload.Mode == costmodel.Train {
			text += fmt.Sprintf(", loss %.4f", step.Loss)
		}
		say(text)
	}
	const shown = 8
	var last []string
	watch.Token = func(sequence int64, id int32) {
		if sequence%max(1, one.job.Workload.Batch) != 0 {
			return // one sequence is followed
		}
		if last = append(last, fmt.Sprint(id)); len(last) > shown {
			last = last[1:]
		}
		say(fmt.Sprintf("sequence %d: … %s", sequence, strings.Join(last, " ")))
	}
}
