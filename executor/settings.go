package executor

import (
	"github.com/devmap-dev/devmap/executor/weights"
)

// Settings are what a run is asked for besides its program. Files are absolute
// or of the working directory; empty: not asked for.
type Settings struct {
	// Steps is how often the program runs, each time with the next batch: at
	// least 1 (mode load loads, and runs none).
	Steps     int64
	Optimizer Optimizer // of training
	// Weights has every parameter by the framework's full name. It is not read
	// where Resume is given. Run does not close it.
	Weights weights.Source
	// Resume is what an earlier run left: weights, the optimizer's state, and
	// how many steps it had done. Nil: the first step is step 1.
	Resume *State
	// Tokens are the ids of each step's batch; nil: they are drawn from Seed.
	Tokens *Tokens
	Seed   uint64
	// Stop are ids behind which a sequence that is generated ends.
	Stop []int32
	// Dump is files of tensors of the first step, in fp32.
	Dump struct {
		// Logits [batch, seq, vocab], those of the prompt's last position [batch,
		// 1, vocab] where tokens are generated; Hidden [batch, seq, width], what
		// the head is given; Grads, of every parameter under its name, of the
		// mean over the batch and before clipping: in training.
		Logits, Hidden, Grads string
	}
	// Save is what is kept of the run behind its last step. Directories must
	// not exist or be empty, and appear whole.
	Save struct {
		// Model gets the parameters under the framework's names, in
		// model.safetensors, and Files by their names beside it (config.json).
		Model string
		Files map[string][]byte
		// State gets what Resume takes.
		State string
	}
	// Watch is told how far the run is; functions that are nil are not called,
	// and no two at once.
	Watch struct {
		Loaded func(bytes, of int64)
		// Token is a generated id of a sequence, which are counted through all
		// steps.
		Token func(sequence int64, id int32)
		Step  func(step *StepResult)
	}
}

// Check refuses settings that the job has no use for or that name what is not
// there, as a [*costmodel.FieldError] that names the flag, before anything is
// allocated or written. Run checks them too.
func (settings *Settings) Check(job *Job) error {
	return (&checker{settings, job}).all()
}
