package bind

import (
	"errors"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
)

// frame is an instruction whose tensors are being placed.
type frame struct {
	*Bound
	at       int32
	instr    *program.Instr
	accesses []program.Access
	unit     int // of its routine, or of an optimizer's step
	out      Instr
	spots    []spot
}

// spot is a tensor, or an end of a copy, in a buffer. It has bytes [first, end) of the arena. reach
// is the end of what was written of it so far, 0 if nothing was.
type spot struct {
	buffer            int32
	first, end, reach int64
}

func (bound *Bound) frame(index int32) *frame {
	instr := &bound.Program.Instrs[index]
	return &frame{Bound: bound, at: index, instr: instr, accesses: bound.Program.Accesses[instr.FirstAccess:instr.EndAccess]}
}

// bind binds the instruction by its op.
func (frame *frame) bind() error {
	switch op := frame.instr.Op; {
	case op.Runs():
		if frame.instr.Routine < 0 {
			return errors.New("it has no routine")
		}
		frame.unit = frame.routines[frame.instr.Routine]
		if err := frame.pass(); err != nil {
			return err
		}
	case op == program.Store || op == program.Fetch:
		return moved(frame)
	case op == program.Step:
		if err := frame.step(); err != nil {
			return err
		}
	default:
		return nil
	}
	return frame.unwritten()
}

// pass binds a routine's instruction.
func (frame *frame) pass() error {
	model := &frame.Recipe.Units[frame.unit]
	if model.Passes {
		return frame.passThrough()
	}
	switch frame.instr.Op {
	case program.Forward:
		if frame.training() {
			return frame.keep(model.Code.Forward.Kernels)
		}
		return frame.flow(model.Code.Forward.Kernels, ofForward)
	case program.Recompute:
		return frame.again(model.Code.Recompute.Kernels)
	case program.Backward, program.BackwardInput:
		return frame.back(model.Code.Backward.Kernels)
	case program.BackwardWeight:
		return learn(frame, model.Code.Learn.Kernels)
	default:
		return frame.flow(model.Code.Decode.Kernels, ofDecode)
	}
}

// find returns the buffer of a kind that the instruction accesses in one of the modes, or
// program.None. of is a unit, or whichever.
func (frame *frame) find(what what, of int, modes ...program.Mode) int32 {
	for _, access := range frame.accesses {
		kind := frame.kinds[access.Buffer]
		if kind.what != what || of != whichever && int(kind.of) != of {
			continue
		}
		for _, mode := range modes {
			if access.Mode == mode {
				return access.Buffer
			}
		}
		if len(modes) == 0 {
			return access.Buffer
		}
	}
	return program.None
}

// whichever matches any unit.
const whichever = -2

// own returns the site of the unit's buffer of a kind.
func (frame *frame) own(what what) site {
	return site{buffer: frame.find(what, frame.unit)}
}

// mode returns how the instruction accesses a buffer, and whether it does.
func (frame *frame) mode(buffer int32) (program.Mode, bool) {
	for _, access := range frame.accesses {
		if access.Buffer == buffer {
			return access.Mode, true
		}
	}
	return 0, false
}

// site is the place of a class of tensors: their offset 0 is shift bytes after the buffer's
// beginning.
type site struct {
	buffer int32
	shift  int64
}

type sites map[recipe.Class]site

func (bound *Bound) start(buffer int32) int64 { return bound.Program.Buffers[buffer].Offset }

func (bound *Bound) training() bool { return bound.Workload.Mode == costmodel.Train }
