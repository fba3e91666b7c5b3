package executor

import (
	"github.com/devmap-dev/devmap/executor/weights"
)

// Settings are what a run takes in addition to its program. Files are absolute
// or of the working directory; empty: not asked for.
type Settings struct {
	// Steps is how often the program runs, each time with the next batch: at
	// least 1 (mode load loads, and runs none).
	Steps     int64
	Optimizer Optimizer // of training
	// Weights has every parameter by the framework's full name; nil where Resume
	// is given. Run closes it.
	Weights weights.Source
	// Resume is the folder of an earlier run's state ([Settings].Save.State):
	// weights, what the optimizer keeps, and how many steps were done. Empty:
	// the first step is step 1.
	Resume string
	// Tokens are the ids of each step's batch; nil: random ones from Seed.
	Tokens *Tokens
	Seed   uint64
	// Stop are ids that end a generated sequence.
	Stop []int32
	// Dump is files of tensors of the first step, in fp32.
	Dump struct {
		// Logits [batch, seq, vocab], those of the prompt's last position [batch,
		// 1, vocab] where tokens are generated; Hidden [batch, seq, width], what
		// the head is given; Grads, of every parameter under its name, of the
		// mean over the batch and before clipping: in training.
		Logits, Hidden, Grads string
	}
	// Save is folders of what is saved after the last step. They must not exist
	// or be empty, and appear whole: Model as Transformers loads it, State as
	// Resume takes it.
	Save struct{ Model, State string }
	// Keep has the machine sleep at the turn's end, in place of closing it: it must be a
	// [Sleeper]. The turn after it has its weights already, and takes none.
	Keep bool
	// Watch reports the progress of the run; functions that are nil are not called,
	// and no two at once.
	Watch struct {
		Loaded func(bytes, of int64)
		// Waking and Sleeping are called when all copies are under way, and when they have
		// ended.
		Waking, Sleeping func(bytes, of int64)
		// Token is a generated id of a sequence, which are counted through all
		// steps.
		Token func(sequence int64, id int32)
		Step  func(step *StepResult)
	}
}
