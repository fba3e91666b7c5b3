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
	if !received && !sent || len(unit.Layers) == 0 {
		return unit
	}
	unit.Layers = slices.Clone(unit.Layers)
	if received {
		in := t.Units[u-1].Output
		unit.Layers[0].Saved -= unit.Entry
		for i := range unit.Layers {
			s := &unit.Layers[i]
			s.Forward, s.HeadPeak = max(s.Forward-in, s.Saved), max(s.HeadPeak-in, 0)
		}
	}
	if sent {
		unit.CheckpointedOutput = 0
		for i := max(0, len(unit.Layers)-unit.Tail); i < len(unit.Layers); i++ {
			s := &unit.Layers[i]
			s.AccumPeak = max(s.AccumPeak-unit.Output, -s.Saved)
			s.Backward = max(s.Backward-unit.Output, s.BackwardGrads-s.Saved, s.Grads-s.Saved)
		}
	}
	return unit
}

// accumulating is the unit when its parameters have gradients from
// micro-batches before.
func accumulating(u *costmodel.Unit) costmodel.Unit {
	out := *u
	out.Layers = slices.Clone(u.Layers)
	for i := range out.Layers {
		s := &out.Layers[i]
		s.Backward, s.BackwardGrads, s.Grads = s.AccumPeak, 0, 0
	}
	return out
}
