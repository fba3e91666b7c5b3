package timeline

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/order"
)

// Rank is what one rank of a pipeline runs: its chunks, in the order of the
// chain.
type Rank struct {
	Schedule costmodel.Schedule
	Index    int64 // of the rank
	Chunks   []costmodel.Interval
}

// Pipeline is the engine of one rank of a pipeline: a step, action by action
// (of a row of like ones the first and the last, see [order.Phase.Ends]).
// It follows torch 2.11's distributed/pipelining (stage.py, schedules.py):
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
func Pipeline(t *costmodel.Table, place Rank, dev *costmodel.Device) Producer {
	return rankOf(t, place, dev).events
}

func rankOf(t *costmodel.Table, place Rank, dev *costmodel.Device) *rank {
	r := &rank{
		mode: t.Workload.Mode, schedule: place.Schedule, phases: order.Phases(place.Schedule, place.Index),
		workspace: t.Workspaces * dev.WorkspaceBytes, chunks: make([]chunk, len(place.Chunks)),
	}
	ends := false // a chunk of the rank ends the model
	for i, at := range place.Chunks {
		if at.First < at.End {
			r.chunks[i] = chunkOf(t, at)
			ends = ends || r.chunks[i].ends
		}
	}
	for i := range r.chunks {
		if ends { // padding is that of ranks without the loss
			r.chunks[i].padding = 0
		}
	}
	return r
}

// chunk is one stage of the pipeline as a rank runs it, which gets its input
// in a buffer that the stage before fills, and its output's gradient in one
// that the stage after does.
type chunk struct {
	first, again stretch // with no gradients yet, and with all of them; nil where it has no unit
	ends         bool    // it ends the model
	in, out      int64   // bytes of a micro-batch's message in, and of its gradient back
	// own is a micro-batch's output, which stays to the end of its backward
	// (stage.py fwd_cache), logits that of the last stage, which stays.
	own, logits int64
	rotary      int64 // cosines and sines of a micro-batch
	padding     int64 // of gradients and states
}

// messages fills in what depends on where the chunk begins and ends alone.
func (c *chunk) messages(t *costmodel.Table, at costmodel.Interval) {
	if t.Pipe != nil {
		c.rotary = t.Pipe.Rotary
	}
	if at.First > 0 {
		c.in = t.Units[at.First-1].Output
	}
	output := t.Units[at.End-1].Output
	if c.ends = at.End == len(t.Units); c.ends {
		c.logits = output
	} else {
		c.own, c.out = output, output
	}
}

func chunkOf(t *costmodel.Table, at costmodel.Interval) chunk {
	var c chunk
	c.messages(t, at)
	var first, again units
	for u := at.First; u < at.End; u++ {
		unit := staged(t, u, u == at.First && u > 0, u == at.End-1 && !c.ends)
		more := accumulating(&unit)
		first, again = append(first, &unit), append(again, &more)
		c.padding += unit.StatePadding
	}
	c.first, c.again = first, again
	return c
}

// rank is a rank of a pipeline as its events need it.
type rank struct {
	mode      costmodel.Mode
	schedule  costmodel.Schedule
	phases    []order.Phase
	chunks    []chunk
	workspace int64
}

func (r *rank) events(emit func(Event)) {
	r.start(emit)
	if r.mode == costmodel.Load || r.empty() {
		return
	}
	r.buffers(emit)
	step := rankStep{rank: r, emit: emit, ran: make([]bool, len(r.chunks))}
	for i := range r.phases {
		step.run(&r.phases[i])
	}
	step.end()
}

// empty reports a rank without a unit.
func (r *rank) empty() bool {
	for i := range r.chunks {
		if r.chunks[i].first != nil {
			return false
		}
	}
	return true
}

// start is what is there throughout.
func (r *rank) start(emit func(Event)) {
	products := false
	for i := range r.chunks {
		if c := &r.chunks[i]; c.first != nil {
			c.first.static(emit)
			products = products || c.first.totals().products
		}
	}
	var there costmodel.Memory
	if products {
		there.Workspace = r.workspace
	}
	emit(Event{Change: there, What: "weights"})
}

// buffers are those of all messages.
func (r *rank) buffers(emit func(Event)) {
	var there costmodel.Memory
	for i := range r.chunks {
		c := &r.chunks[i]
		there.Workspace += c.padding
		there.CommBuffers += r.schedule.MicroBatches * c.in
		if r.mode == costmodel.Train {
			there.CommBuffers += r.schedule.MicroBatches * c.out
		}
	}
	emit(Event{Change: there, What: "receive buffers"})
}

// rankStep is a rank within a step.
type rankStep struct {
	*rank
	emit func(Event)
	sent int64  // an input's gradient that is held
	ran  []bool // by chunk: its parameters have gradients
}

// run tells a phase by its ends: what is passed over changes what there is by
// what the second time does, as often.
func (s *rankStep) run(p *order.Phase) {
	var each costmodel.Memory
	emit, counting := s.emit, false
	s.emit = func(e Event) {
		if counting {
			each = add(each, e.Change, 1)
		}
		emit(e)
	}
	p.Ends(s.act, func() { counting = true }, func(times int64) {
		counting = false
		emit(Event{Change: add(costmodel.Memory{}, each, times)})
	})
	s.emit = emit
}

func (s *rankStep) act(a order.Action) {
	c := &s.chunks[a.Chunk]
	switch {
	case c.first == nil:
	case a.Backward && s.mode == costmodel.Train:
		s.backward(c, int(a.Chunk))
	case a.Backward:
	case s.mode == costmodel.Train:
		s.forward(c)
	default:
		s.infer(c)
	}
}

func (s *rankStep) forward(c *chunk) {
	s.emit(Event{Change: activations(c.rotary)})
	c.first.forward(s.emit)
	c.first.bodyEnd(s.emit) // autocast's region is the module's forward
	s.emit(Event{Change: activations(c.own + c.logits), What: "end of forward"})
}

// infer is one forward that no backward follows: stages keep their outputs.
func (s *rankStep) infer(c *chunk) {
	s.emit(Event{Change: activations(c.rotary)})
	c.first.infer(s.emit)
	s.emit(Event{Change: activations(c.own + c.logits - c.rotary), What: "end of forward"})
}

func (s *rankStep) backward(c *chunk, number int) {
	if s.ran[number] {
		c.again.backward(s.emit)
	} else {
		c.first.backward(s.emit)
	}
	s.ran[number] = true
	gone := c.rotary + c.own
	if s.schedule.Kind == costmodel.OneFOneB {
		gone += s.sent - c.in
		s.sent = c.in
	}
	s.emit(Event{Change: activations(-gone)})
}

// end concatenates the last stage's outputs, then runs the optimizer.
func (s *rankStep) end() {
	s.emit(Event{Change: activations(-s.sent)}) // a variable of _step_microbatches
	var step int64
	for i := range s.chunks {
		c := &s.chunks[i]
		if c.ends {
			s.emit(Event{Over: activations(s.schedule.MicroBatches * c.logits), What: "merging of outputs"})
		}
		if c.first != nil {
			step += c.first.totals().step
		}
	}
	if s.mode == costmodel.Train {
		s.emit(Event{Over: activations(step), What: "optimizer step"})
	}
}
