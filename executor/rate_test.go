package executor

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestRate: a sequence's first token comes from the prompt's pass, whose time does not count. If
// there are no other tokens, whole steps count.
func TestRate(t *testing.T) {
	run := &running{sessionState: &sessionState{job: &Job{Workload: &costmodel.Workload{Batch: 2}}}, result: &Result{StepSeconds: 4}}
	for length, want := range map[int]float64{1: 0.5, 3: 2} {
		speech := &generation{running: run, sequences: [][]int32{make([]int32, length), make([]int32, length)}}
		speech.end()
		speech.seconds = 2
		if got := speech.rate(); got != want {
			t.Errorf("two sequences of %d tokens in 2 s of steps of 4 s: %v tokens/s, want %v", length, got, want)
		}
	}
}
