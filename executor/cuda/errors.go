package cuda

import (
	"fmt"
	"strings"
	"time"
)

// HangError is a step in which nothing ended for longer than was to be waited. What
// the GPUs were given cannot be taken back: the process is to end.
type HangError struct {
	After time.Duration
	Stand string // where every stream is, a line each
}

func (err *HangError) Error() string {
	return "nothing ended on any GPU for " + err.After.String() + ":\n" + err.Stand
}

// LostError is a GPU whose context answers nothing more: a kernel touched what is not
// there, or the GPU itself failed. What was on it is gone, and what other GPUs wait for
// may never come: the process is to end.
type LostError struct {
	GPUs []string // those that are lost, as in "GPU 1 (NVIDIA H200)"
	// With are the process's other GPUs that answer nothing either: a driver ends all
	// contexts of a process of which one fails.
	With  []string
	Err   error  // what the driver answered
	Stand string // where their streams were, a line each; empty: in no step
}

func (err *LostError) Error() string {
	text := strings.Join(err.GPUs, " and ") + " is lost"
	if len(err.GPUs) > 1 {
		text = strings.Join(err.GPUs, " and ") + " are lost"
	}
	if len(err.With) > 0 {
		text += ", and with it what the process had on " + strings.Join(err.With, " and ")
	}
	if text += ": " + err.Err.Error(); err.Stand != "" {
		text += ":\n" + err.Stand
	}
	return text
}

func (err *LostError) Unwrap() error { return err.Err }

// TakenError is a GPU that does not let the process in: another one has it for itself,
// as where its mode is EXCLUSIVE_PROCESS.
type TakenError struct{ Err error }

func (err *TakenError) Error() string { return "another process has it for itself: " + err.Err.Error() }

func (err *TakenError) Unwrap() error { return err.Err }

// PathError is a path over which other bytes arrived than were sent: nothing was run.
type PathError struct {
	Path string // its ends and its transport, in words
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
