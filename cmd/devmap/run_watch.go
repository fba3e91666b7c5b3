package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// watch lets say tell how far the run is: what is loaded, then the steps, with
// the last loss or the ids that come.
func (one *planRun) watch(say func(string)) {
	watch, steps := &one.settings.Watch, one.settings.Steps
	var began time.Time
	watch.Loaded = func(bytes, of int64) {
		text := fmt.Sprintf("loading: %v of %v", costmodel.Bytes(bytes), costmodel.Bytes(of))
		if began.IsZero() {
			began = time.Now()
		} else if took := time.Since(began).Seconds(); took > 0 && len(one.gpus) > 0 { // a processor's memory is its own
			text += fmt.Sprintf(", %.3g GB/s", float64(bytes)/took/1e9)
		}
		say(text)
	}
	watch.Waking = func(_, of int64) { say(fmt.Sprintf("waking: %v", costmodel.Bytes(of))) }
	watch.Sleeping = func(_, of int64) { say(fmt.Sprintf("going to sleep: %v", costmodel.Bytes(of))) }
	watch.Step = func(step *executor.StepResult) {
		text := fmt.Sprintf("step %d of %d: %s", step.Number, steps, show.Seconds(step.Times.Step.Seconds()))
		if one.job.Workload.Mode == costmodel.Train {
			text += fmt.Sprintf(", loss %.4f", step.Loss)
		}
		say(text)
	}
	if one.job.Workload.NewTokens > 0 {
		watch.Token = one.following(say)
	}
}

// following shows the ids of a batch's first sequence as they come.
func (one *planRun) following(say func(string)) func(int64, int32) {
	const shown = 8
	of, ids := int64(-1), []string(nil)
	return func(sequence int64, id int32) {
		if sequence%one.job.Workload.Batch != 0 {
			return
		}
		if sequence != of {
			of, ids = sequence, nil
		}
		ids = append(ids, fmt.Sprint(id))
		say(fmt.Sprintf("sequence %d, token %d of %d: %s", sequence, len(ids), one.job.Workload.NewTokens, strings.Join(ids[max(0, len(ids)-shown):], " ")))
	}
}
