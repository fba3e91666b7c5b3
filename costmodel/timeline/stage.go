package timeline

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// staged is a unit as a stage runs it. received: its input is the stage's
// receive buffer, which is counted by itself. sent: its output leaves the
// stage, which keeps it to the end of its backward (stage.py fwd_cache and
// backward_one_chunk), and the output's gradient comes in a buffer.
func staged(t *costmodel.Table, u int, received, sent bool) costmodel.Unit {
	unit := t.Units[u]
	if !received && !sent || len(unit.Steps) == 0 {
		return unit
	}
	unit.Steps = slices.Clone(unit.Steps)
	if received {
		in := t.Units[u-1].Output
		unit.Steps[0].Saved -= unit.Entry
		for i := range unit.Steps {
			s := &unit.Steps[i]
			s.Forward, s.Late = max(s.Forward-in, s.Saved), max(s.Late-in, 0)
		}
	}
	if sent {
		unit.Handed = 0
		for i := max(0, len(unit.Steps)-unit.Tail); i < len(unit.Steps); i++ {
			s := &unit.Steps[i]
			s.Again = max(s.Again-unit.Output, -s.Saved)
			s.Backward = max(s.Backward-unit.Output, s.BackwardGrads-s.Saved, s.Grads-s.Saved)
		}
	}
	return unit
}

// accumulating is the unit when its parameters have gradients from
// micro-batches before.
func accumulating(u *costmodel.Unit) costmodel.Unit {
	out := *u
	out.Steps = slices.Clone(u.Steps)
	for i := range out.Steps {
		s := &out.Steps[i]
		s.Backward, s.BackwardGrads, s.Grads = s.Again, 0, 0
	}
	return out
}
