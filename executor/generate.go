package executor

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/executor/program"
)

// generation takes the ids that the head makes, at the fences after it.
type generation struct {
	*running
	after     map[int32]*pass // the pass of the head that a fence follows
	sequences [][]int32       // of the step
	stopped   []bool
	left      int
	prompts   int64     // micro-batches whose prompt is read
	started   time.Time // the step
	promptEnd time.Time
	firsts    []float64 // seconds to the first ids, of all steps

	// tokens counts the tokens that decodes made in all steps, without each
	// sequence's first. seconds is their time.
	seconds float64
	tokens  int64
}

// generation returns nil if the program generates nothing.
func (run *running) generation() *generation {
	if run.job.Workload.NewTokens == 0 {
		return nil
	}
	speech := &generation{running: run, after: make(map[int32]*pass)}
	prog := run.job.Program
	for i := range run.passes {
		pass := &run.passes[i]
		for index := pass.instr + 1; index < prog.Devices[pass.device].End; index++ {
			if instr := &prog.Instrs[index]; instr.Op == program.Fence && instr.MicroBatch == prog.Instrs[pass.instr].MicroBatch {
				speech.after[index] = pass
				break
			}
		}
	}
	return speech
}

// begin makes room for a step's sequences.
func (speech *generation) begin(step *Step) {
	batch := int(speech.job.Workload.Batch)
	speech.sequences, speech.stopped = make([][]int32, batch), make([]bool, batch)
	speech.left, speech.prompts, speech.started = batch, 0, time.Now()
	step.Copies, step.Copied = speech.place, speech.copied
}

// place returns the place of the ids that a micro-batch's sequences get before a fence. The pass of
// the last token makes none.
func (speech *generation) place(index int32) (offset, bytes int64) {
	pass := speech.after[index]
	if pass == nil {
		return 0, 0
	}
	ids, known := speech.given(pass, "ids")
	if !known {
		return 0, 0
	}
	return ids.Offset, 4 * ids.Rows
}

// copied takes the ids. It ends the step when every sequence of the batch has ended.
func (speech *generation) copied(index int32, data []byte) error {
	pass := speech.after[index]
	if pass.op == program.Forward {
		speech.prompts++
		if speech.prompts == max(1, speech.job.Workload.MicroBatches) {
			speech.promptEnd = time.Now()
			speech.firsts = append(speech.firsts, speech.promptEnd.Sub(speech.started).Seconds())
		}
	}
	rows := int64(len(data) / 4)
	for row := range rows {
		speech.take(pass.microBatch*rows+row, int32(binary.LittleEndian.Uint32(data[4*row:])))
	}
	if speech.left == 0 {
		speech.result.Stopped = true
		return ErrStop
	}
	return nil
}

// take adds an id to a sequence of the batch that has not stopped.
func (speech *generation) take(at int64, id int32) {
	if speech.stopped[at] {
		return
	}
	speech.sequences[at] = append(speech.sequences[at], id)
	if onToken := speech.settings.Watch.Token; onToken != nil {
		onToken(speech.generated+at, id)
	}
	if slices.Contains(speech.settings.Stop, id) {
		speech.stopped[at] = true
		speech.left--
	}
}

// end finishes a step.
func (speech *generation) end() {
	if speech.prompts > 0 && !speech.promptEnd.IsZero() {
		speech.seconds += time.Since(speech.promptEnd).Seconds()
		speech.promptEnd = time.Time{}
	}
	for _, ids := range speech.sequences {
		speech.tokens += int64(len(ids)) - 1
	}
	speech.result.Tokens = append(speech.result.Tokens, speech.sequences...)
	speech.generated += int64(len(speech.sequences))
}

// rate returns new tokens per second. It counts the tokens and the time of decodes or, if prompts
// make all tokens, of whole steps.
func (speech *generation) rate() float64 {
	if speech.tokens == 0 || speech.seconds <= 0 {
		return float64(speech.job.Workload.Batch) / speech.result.StepSeconds
	}
	return float64(speech.tokens) / speech.seconds
}
