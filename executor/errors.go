package executor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
)

// ErrStop ends a step early: every sequence has all of its tokens.
var ErrStop = errors.New("the step was ended")

// ErrMemory is any failure to get memory that was reported as free. Errors of backends match it
// ([errors.Is]).
var ErrMemory = errors.New("out of memory")

// MemoryError reports an arena that has not enough free memory.
type MemoryError struct {
	Device int32 // of the plan
	// Need is what all arenas of the place take together, Free what the place has.
	Need, Free int64
	Place      string // what is too small: this machine's memory, GPU 3
}

func (err *MemoryError) Error() string {
	return fmt.Sprintf("all arenas in %s take %v together, and it has %v free: that of device %d is the first without room", err.Place, costmodel.Bytes(err.Need), costmodel.Bytes(err.Free), err.Device)
}

// ValueError is a NaN or an infinity in a tensor that an instruction made.
type ValueError struct {
	Unit, Tensor string
	Op           program.Op
	MicroBatch   int32 // [program.None] in the optimizer's step
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

// HangError is a step in which nothing ended for longer than the limit. Work on GPUs cannot be
// canceled: the process must end.
type HangError struct {
	After time.Duration
	State string // where every stream is, a line each
}

func (err *HangError) Error() string {
	return "nothing ended on any GPU for " + err.After.String() + ":\n" + err.State
}

// LostError is a GPU whose context fails every call: a kernel touched memory that does not exist,
// or the GPU itself failed. The GPU's data is lost, and other GPUs may wait for it forever: the
// process must end.
type LostError struct {
	GPUs []string // the lost GPUs, as in "GPU 1 (NVIDIA H200)"
	// With lists the process's other GPUs that fail too. If one context of a process fails, the
	// driver ends them all.
	With  []string
	Err   error  // the driver's error
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

// TakenError is a GPU that another process uses exclusively, for example because its mode is
// EXCLUSIVE_PROCESS.
type TakenError struct{ Err error }

func (err *TakenError) Error() string { return "another process has it for itself: " + err.Err.Error() }

func (err *TakenError) Unwrap() error { return err.Err }

// PathError is a path over which other bytes arrived than were sent. Nothing has run then.
type PathError struct {
	Path string // its ends and its transport, as text
	// Byte is the first of Bytes that differs, Want what was sent, Got what arrived.
	Byte, Bytes int64
	Want, Got   byte
	// Peer: the path is direct. By way of the host it may work.
	Peer bool
}

func (err *PathError) Error() string {
	text := fmt.Sprintf("%s carries bytes wrong: byte %d of %d arrived as 0x%02x and was sent as 0x%02x", err.Path, err.Byte, err.Bytes, err.Got, err.Want)
	if err.Peer {
		text += "; --transport host goes another way"
	}
	return text
}
