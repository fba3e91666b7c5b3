package order

// Action is a pass of one micro-batch through one chunk. A chunk is the index of a stage on its
// rank ([costmodel.Schedule.Stage]).
type Action struct {
	Kind              Kind
	Chunk, MicroBatch int64
}

// Kind is what an action computes. A backward is whole, or in two halves: the gradient of the input
// first, the gradients of the weights at any later time. Saved tensors live to the end of the
// second half.
type Kind uint8

// The kinds of actions. Their letters are torch's (schedules.py, _ComputationType).
const (
	Forward  Kind = iota // F
	Backward             // B: both halves at once
	Input                // I: the gradient of the input, and what the weights' gradients need
	Weight               // W: the gradients of the weights
)

// letters are torch's letters of the kinds.
const letters = "FBIW"

// String is torch's letter of the kind.
func (kind Kind) String() string { return letters[kind : kind+1] }

// Sends reports whether an action of the kind makes the gradient that the stage before waits for.
func (kind Kind) Sends() bool { return kind == Backward || kind == Input }

// Ends reports whether an action of the kind ends the life of the saved tensors.
func (kind Kind) Ends() bool { return kind == Backward || kind == Weight }
