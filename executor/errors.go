package executor

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
)

// ErrStop ends a step early: every sequence has what it was to have.
var ErrStop = errors.New("the step was ended")

// ErrMemory is any failure for want of memory where there was said to be room: an
// error of a backend is it ([errors.Is]).
var ErrMemory = errors.New("out of memory")

// RoomError says that an arena found no room.
type RoomError struct {
	Device int32 // of the plan
	// Need is what all arenas of the place take together, Free what it has.
	Need, Free int64
	Place      string // where the room is missing: this machine's memory, GPU 3
}

func (err *RoomError) Error() string {
	return fmt.Sprintf("device %d: the arenas in %s take %v, and it has %v free", err.Device, err.Place, costmodel.Bytes(err.Need), costmodel.Bytes(err.Free))
}

// ValueError is a number that is none, NaN or infinite, in what an instruction
// made.
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
