package executor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
)

// ErrStop ends a step early: every sequence has what it was to have.
var ErrStop = errors.New("the step was ended")

// ErrMemory is any failure for want of memory where there was said to be room: an
// error of a backend is it ([errors.Is]).
var ErrMemory = errors.New("out of memory")

// MemoryError reports an arena that has not enough free memory.
type MemoryError struct {
	Device int32 // of the plan
	// Need is what all arenas of the place take together, Free what it has.
	Need, Free int64
	Place      string // what is too small: this machine's memory, GPU 3
}

func (err *MemoryError) Error() string {
	return fmt.Sprintf("device %d: the arenas in %s take %v, and it has %v free", err.Device, err.Place, costmodel.Bytes(err.Need), costmodel.Bytes(err.Free))
}

// ValueError is a NaN or an infinity in a tensor that an instruction made.
type ValueError struct {
	Unit, Tensor string
	Op           program.Op
	MicroBatch   int32 // [program.None] where the optimizer steps
	Step         int64
	Value        float32
}

func (err *ValueError) Error() string {
	at := fmt.Sprintf("step %d", err.Step)
	if err.MicroBatch >= 0 {
		at = fmt.Sprintf("%s, micro-batch %d", at, err.MicroBatch)
	}
	return fmt.Sprintf("%s: %v of %s makes %v in %s", at, err.Op, err.Unit, err.Value, err.Tensor)
}

// HangError is a step in which nothing ended for longer than was to be waited. What
// the GPUs were given cannot be taken back: the process is to end.
type HangError struct {
	After time.Duration
	State string // where every stream is, a line each
}

func (err *HangError) Error() string {
	return "nothing ended on any GPU for " + err.After.String() + ":\n" + err.State
}

// LostError is a GPU whose context answers nothing more: a kernel touched what is not
// there, or the GPU itself failed. What was on it is gone, and what other GPUs wait for
// may never come: the process is to end.
type LostError struct {
	GPUs []string // those that are lost, as in "GPU 1 (NVIDIA H200)"
	// With are the process's other GPUs that answer nothing either: if one context of a
	// process fails, the driver ends them all.
	With  []string
	Err   error  // what the driver answered
	State string // where their streams were, a line each; empty: in no step
}

func (err *LostError) Error() string {
	text := strings.Join(err.GPUs, " and ") + " is lost"
	if len(err.GPUs) > 1 {
		text = strings.Join(err.GPUs, " and ") + " are lost"
	}
	if len(err.With) > 0 {
		text += ", and with it what the process had on " + strings.Join(err.With, " and ")
	}
	if text += ": " + err.Err.Error(); err.State != "" {
		text += ":\n" + err.State
	}
	return text
}

func (err *LostError) Unwrap() error { return err.Err }

// TakenError is a GPU that does not let the process in: another one uses it
// exclusively, for example because its mode is EXCLUSIVE_PROCESS.
type TakenError struct{ Err error }

func (err *TakenError) Error() string { return "another process has it for itself: " + err.Err.Error() }

func (err *TakenError) Unwrap() error { return err.Err }

// PathError is a path over which other bytes arrived than were sent: nothing was run.
type PathError struct {
	Path string // its ends and its transport, as text
	// Byte is the first of Bytes that is another one, Want what was sent, Got what
	// arrived.
	Byte, Bytes int64
	Want, Got   byte
	// Peer: from memory to memory. By way of the host it may go right.
	Peer bool
}

func (err *PathError) Error() string {
	text := fmt.Sprintf("%s carries bytes wrong: byte %d of %d arrived as 0x%02x and was sent as 0x%02x", err.Path, err.Byte, err.Bytes, err.Got, err.Want)
	if err.Peer {
		text += "; --transport host goes another way"
	}
	return text
}
