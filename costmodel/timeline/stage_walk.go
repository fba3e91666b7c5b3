package timeline

import "github.com/devmap-dev/devmap/costmodel"

// StagePeak walks through a step of one rank of a pipeline, action by action
// (of a row of like ones the first and the last, see [costmodel.Phase.Ends]), and returns
// its peak. It follows torch 2.11's distributed/pipelining
// (stage.py, schedules.py):
//   - PipelineStage._prepare_forward_infra and _create_grad_recv_info allocate
//     receive buffers for all micro-batches once; they stay.
//   - fwd_cache keeps a micro-batch's output until its backward has ended
//     (backward_one_chunk holds it in stage_output).
//   - The last stage keeps every micro-batch's output in output_chunks to the
//     next step, and _merge_outputs concatenates them when all are done.
//   - Schedule1F1B._step_microbatches holds the input's gradient in bwd_sends
//     until the next backward has made its own.
//   - The first backward of a stage makes its gradients, later ones add to them.
//
// Chunks of a rank that hold no unit are passed over.
func StagePeak(t *costmodel.Table, place Rank, dev *costmodel.Device) Peak {
	return stagePeak(t, place, dev, place.Schedule.Phases(place.Index))
}

func stagePeak(t *costmodel.Table, place Rank, dev *costmodel.Device, phases []costmodel.Phase) Peak {
	r := ranker{train: t.Workload.Mode == costmodel.Train, holds: place.Schedule.Kind == costmodel.OneFOneB}
	var units []*costmodel.Unit
	for _, s := range place.Chunks {
		c := stageChunk(t, s)
		r.chunks = append(r.chunks, c)
		for i := range c.first {
			units = append(units, &c.first[i])
		}
	}
	r.start(units, &Resident{Workspace: t.Workspaces * dev.WorkspaceBytes})
	if t.Workload.Mode == costmodel.Load || len(units) == 0 {
		return r.peak
	}
	r.buffers(place.Schedule.MicroBatches)
	r.ran = make([]bool, len(r.chunks))
	for _, p := range phases {
		var before costmodel.Memory
		p.Ends(r.act, func() { before = r.now }, func(times int64) { r.now = further(r.now, before, times) })
	}
	r.end(units, place.Schedule.MicroBatches)
	return r.peak
}

// ranker is the walk of a rank.
type ranker struct {
	walker
	chunks []chunk
	train  bool
	holds  bool   // a sent gradient stays to the end of the next backward
	sent   int64  // such a gradient
	ran    []bool // by chunk: its parameters have gradients
}

func (r *ranker) act(a costmodel.Action) {
	switch c := &r.chunks[a.Chunk]; {
	case !a.Backward:
		r.run(c)
	case r.train:
		r.runBack(int(a.Chunk))
	}
}

func (r *ranker) buffers(m int64) {
	loss, padding := false, int64(0)
	for i := range r.chunks {
		c := &r.chunks[i]
		loss = loss || c.last && len(c.first) > 0
		for u := range c.first {
			padding += c.first[u].StatePadding
		}
		r.now.CommBuffers += m * r.chunks[i].in
		if r.train {
			r.now.CommBuffers += m * r.chunks[i].out
		}
	}
	if !loss {
		r.now.Workspace += padding
	}
	r.see("receive buffers", 0, 0)
}

// run is one forward.
func (r *ranker) run(c *chunk) {
	if len(c.first) == 0 {
		return
	}
	if !r.train {
		r.infer(c)
		return
	}
	r.now.Activations += c.rotary
	for i := range c.first {
		r.forward(&c.first[i])
	}
	for i := range c.first {
		r.now.Activations -= c.first[i].Cached // the autocast region is the module's forward
	}
	r.now.Activations += c.output
	r.see("end of forward", 0, 0)
}

// infer is one forward that no backward follows: stages keep their outputs.
func (r *ranker) infer(c *chunk) {
	for i := range c.first {
		u := &c.first[i]
		for k := range u.Steps {
			s := &u.Steps[k]
			r.see("forward of "+s.Layer, c.rotary+max(s.Forward, s.Late), 0)
		}
	}
	r.now.Activations += c.output
	r.see("end of forward", 0, 0)
}

// runBack is one backward of a chunk.
func (r *ranker) runBack(k int) {
	c := &r.chunks[k]
	if len(c.first) == 0 {
		return
	}
	units := c.first
	if r.ran[k] {
		units = c.again
	}
	for i := len(units) - 1; i >= 0; i-- {
		r.backward(&units[i])
	}
	r.ran[k] = true
	r.now.Activations -= c.rotary
	if !c.last {
		r.now.Activations -= c.output
	}
	if r.holds {
		r.now.Activations += c.in - r.sent
		r.sent = c.in
	}
}

// end concatenates the last stage's outputs, then runs the optimizer.
func (r *ranker) end(units []*costmodel.Unit, m int64) {
	r.now.Activations -= r.sent // a variable of _step_microbatches
	for i := range r.chunks {
		if c := &r.chunks[i]; c.last && len(c.first) > 0 {
			r.see("merging of outputs", m*c.output, 0)
		}
	}
	if !r.train {
		return
	}
	var step int64
	for _, u := range units {
		step += u.StepTransient
	}
	r.see("optimizer step", step, 0)
}

// further is m after so many more steps like that from before to m.
func further(m, before costmodel.Memory, times int64) costmodel.Memory {
	return costmodel.Memory{
		Params:         m.Params + times*(m.Params-before.Params),
		Grads:          m.Grads + times*(m.Grads-before.Grads),
		OptimizerState: m.OptimizerState + times*(m.OptimizerState-before.OptimizerState),
		Activations:    m.Activations + times*(m.Activations-before.Activations),
		KVCache:        m.KVCache + times*(m.KVCache-before.KVCache),
		Workspace:      m.Workspace + times*(m.Workspace-before.Workspace),
		CommBuffers:    m.CommBuffers + times*(m.CommBuffers-before.CommBuffers),
	}
}
