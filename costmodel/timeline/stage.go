package timeline

import "github.com/devmap-dev/devmap/costmodel"

// Rank is what one rank of a pipeline runs: its chunks, in the order of
// the chain.
type Rank struct {
	Schedule costmodel.Schedule
	Index    int64 // of the rank
	Chunks   []costmodel.Interval
}

// chunk is one stage of the pipeline as a rank runs it.
type chunk struct {
	first, again []costmodel.Unit // with no gradients yet, and with all of them
	in, out      int64            // bytes of a micro-batch's message in, and out
	last         bool             // it ends the model
	// kept is what the stage keeps of a micro-batch besides what its layers
	// save: cosines and sines, and its output (stage.py fwd_cache).
	rotary, output int64
}

// stageChunk turns a stretch of units into a stage: its input is a buffer that the
// stage before fills and its output's gradient one that the stage after does.
func stageChunk(t *costmodel.Table, s costmodel.Interval) chunk {
	c := chunk{last: s.End == len(t.Units)}
	if t.Pipe != nil {
		c.rotary = t.Pipe.Rotary
	}
	if s.First >= s.End {
		return c
	}
	if s.First > 0 {
		c.in = t.Units[s.First-1].Output
	}
	c.output = t.Units[s.End-1].Output
	if !c.last {
		c.out = c.output
	}
	for u := s.First; u < s.End; u++ {
		unit := staged(t, u, u == s.First && s.First > 0, u == s.End-1 && !c.last)
		c.first = append(c.first, unit)
		c.again = append(c.again, accumulating(&unit))
	}
	return c
}

// staged is a unit as a stage runs it. received: its input is the stage's
// receive buffer, which is counted by itself. sent: its output leaves the
// stage, which keeps it to the end of its backward (stage.py fwd_cache and
// backward_one_chunk), and the output's gradient comes in a buffer.
func staged(t *costmodel.Table, u int, received, sent bool) costmodel.Unit {
	unit := t.Units[u]
	if !received && !sent || len(unit.Steps) == 0 {
		return unit
	}
	unit.Steps = append([]costmodel.Step(nil), unit.Steps...)
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
	out.Steps = append([]costmodel.Step(nil), u.Steps...)
	for i := range out.Steps {
		s := &out.Steps[i]
		s.Backward, s.BackwardGrads, s.Grads = s.Again, 0, 0
	}
	return out
}
