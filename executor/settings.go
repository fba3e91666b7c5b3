package executor

import (
	"github.com/devmap-dev/devmap/executor/weights"
)

// Settings are the inputs of a run in addition to its program. Files are absolute or of the working
// directory; empty: not requested.
type Settings struct {
	// Steps is how often the program runs, each time with the next batch: at least 1. Mode load
	// runs no step.
	Steps     int64
	Optimizer Optimizer // of training
	// Weights has every parameter by the framework's full name; nil if Resume is given. Run closes
	// it.
	Weights weights.Source
	// Resume is the folder of an earlier run's state ([Settings].Save.State): weights, what the
	// optimizer keeps, and how many steps were done. Empty: the first step is step 1.
	Resume string
	// Tokens are the ids of each step's batch; nil: random ones from Seed.
	Tokens *Tokens
	Seed   uint64
	// Stop are ids that end a generated sequence.
	Stop []int32
	// Dump has the files for tensors of the first step, in fp32.
	Dump struct {
		// Logits are [batch, seq, vocab], or those of the prompt's last position [batch, 1, vocab]
		// if tokens are generated. Hidden is the head's input [batch, seq, width]. Grads are for
		// training: of every parameter under its name, of the mean over the batch and before
		// clipping.
		Logits, Hidden, Grads string
	}
	// Save has the folders for what is saved after the last step. They must not exist or be empty,
	// and appear whole: Model as Transformers loads it, State as Resume takes it.
	Save struct{ Model, State string }
	// Keep has the machine sleep at the turn's end instead of closing it: it must be a [Sleeper].
	// The next turn already has its weights, and takes none.
	Keep bool
	// Watch reports the progress of the run. Functions that are nil are not called. No two are
	// called at once.
	Watch struct {
		Loaded func(bytes, of int64)
		// Waking and Sleeping are called when all copies have started, and when they have ended.
		Waking, Sleeping func(bytes, of int64)
		// Token gets a generated id and its sequence. Sequences are counted through all steps.
		Token func(sequence int64, id int32)
		Step  func(step *StepResult)
	}
}
