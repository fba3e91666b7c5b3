package timeline

import "github.com/devmap-dev/devmap/costmodel"

// sharded is the engine of one rank whose parameters are gathered group by
// group: FSDP2 (torch 2.11). The rank is the first one: where rows do not
// divide evenly, others hold a little less of the optimizer's states.
func sharded(t *costmodel.Table, held units, resident Resident) Producer {
	return func(emit func(Event)) {
		s := shardedStep{t: t, units: held, resident: &resident, groups: make([]*costmodel.Group, len(held)), emit: emit}
		for i := range t.Groups {
			group := &t.Groups[i]
			s.reduced += group.Reduced
			if group.Root {
				s.root = group
				continue
			}
			for _, u := range group.Units {
				s.groups[u] = group
			}
		}
		start(held, &resident, emit)
		if t.Workload.Mode == costmodel.Load {
			return
		}
		if s.accumulates() {
			emit(Event{Change: gradients(s.reduced)}) // of the micro-batches before
		}
		s.forward()
		s.end()
		if t.Workload.Mode == costmodel.Train {
			s.backward()
		}
	}
}

// shardedStep is a step of such a rank.
type shardedStep struct {
	t        *costmodel.Table
	units    units
	resident *Resident
	groups   []*costmodel.Group // by unit; nil: the root's
	root     *costmodel.Group   // or nil
	emit     func(Event)

	reduced int64 // sharded gradients of all groups
	buffer  int64 // of an all-gather, not yet freed
	reduce  int64 // input of a reduce-scatter, not yet freed
	stream  int64 // what passes between units at the moment
}

// accumulates reports that a step has sharded gradients before its last
// backward. FSDP2 reduces in every micro-batch (reduce_grads is true unless
// set_requires_gradient_sync turns it off).
func (s *shardedStep) accumulates() bool {
	return s.t.Workload.Mode == costmodel.Train && s.t.Workload.MicroBatches > 1
}

// comm changes the communication buffers.
func (s *shardedStep) comm(bytes int64) { s.emit(Event{Change: buffers(bytes)}) }

// at looks at a moment between units.
func (s *shardedStep) at(what string, group *costmodel.Group) {
	s.emit(Event{Over: activations(s.stream), What: what, Layer: group.Name})
}

const (
	gathering = "gather of "
	reducing  = "reduce-scatter of "
)

func (s *shardedStep) forward() {
	s.enter(s.root)
	for i, unit := range s.units {
		s.enter(s.groups[i])
		s.units[i : i+1].forward(s.emit)
		s.leave(s.groups[i])
		// What it hands to the next unit, where no unit's figures hold it
		// already.
		s.stream = 0
		if unit.CheckpointedOutput == 0 {
			s.stream = unit.Output
		}
	}
	s.stream = 0 // the outputs are in the head's figures
}

// enter gathers a group before its forward. The buffer of the all-gather
// before is freed when the new one has been issued (_fsdp_param_group.py
// wait_for_unshard: implicit prefetch), so that two are alive at once.
func (s *shardedStep) enter(group *costmodel.Group) {
	if group == nil {
		return
	}
	s.gather(group)
	s.comm(group.Gathered - s.buffer)
	s.buffer = group.Buffer
	s.at(gathering, group)
}

// gather issues an all-gather (_fsdp_collectives.py foreach_all_gather): the
// cast part is freed when its copy is in the output.
func (s *shardedStep) gather(group *costmodel.Group) {
	s.comm(group.Buffer + group.CopyIn)
	s.at(gathering, group)
	s.comm(-group.CopyIn)
}

// leave frees a group's whole parameters after its forward; the root's stay
// (_fsdp_state.py _lazy_init: post_forward_mesh_info is None).
func (s *shardedStep) leave(group *costmodel.Group) {
	if group != nil && !group.StaysGathered {
		s.comm(-group.Gathered)
	}
}

// end is the end of forward: generation's last token gathers every group
// again. The last buffer goes when the root's forward returns
// (_fsdp_state.py _post_forward), after the head and the loss.
func (s *shardedStep) end() {
	s.units.bodyEnd(s.emit)
	grown := s.units.grows()
	for i := range s.units {
		if grown {
			s.enter(s.groups[i])
		}
		s.units[i:i+1].headOf(grown, s.emit)
		if grown {
			s.leave(s.groups[i])
		}
	}
	endForward(s.resident, 0, s.emit)
	s.comm(-s.buffer)
	s.buffer = 0
}

// backward goes through the groups from the last to the first. The gradient
// of the loss reaches the root's hook first, which prefetches the last block's
// parameters (_fsdp_param_group.py pre_backward).
func (s *shardedStep) backward() {
	pending := s.prefetch(s.order())
	for i := len(s.units) - 1; i >= 0; i-- {
		group := s.groups[i]
		s.stream = s.units[i].Output
		if group != nil {
			pending = s.arrive(group, pending)
		}
		backward(s.units[i], s.emit)
		if group != nil {
			s.reduceGrads(group)
		}
	}
	s.stream = 0
	// The root's inputs need no gradient, so that its gradients are reduced by
	// the callback at the end (_fsdp_state.py _root_post_backward_final_callback).
	if s.root != nil {
		s.reduceGrads(s.root)
	}
	s.update()
}

// order are the groups that a backward gathers again, the last first.
func (s *shardedStep) order() []*costmodel.Group {
	var out []*costmodel.Group
	for i := len(s.units) - 1; i >= 0; i-- {
		if s.groups[i] != nil {
			out = append(out, s.groups[i])
		}
	}
	return out
}

// prefetch issues the all-gather of the next group in backward's order, of
// which the rest is returned.
func (s *shardedStep) prefetch(next []*costmodel.Group) []*costmodel.Group {
	if len(next) > 0 && !next[0].StaysGathered {
		s.gather(next[0])
		s.buffer = next[0].Buffer
	}
	return next
}

// arrive is a group's pre_backward: its parameters are copied out of the
// prefetched buffer, which is freed, and the group before it is prefetched.
func (s *shardedStep) arrive(group *costmodel.Group, pending []*costmodel.Group) []*costmodel.Group {
	if !group.StaysGathered {
		s.comm(group.Gathered)
		s.at(gathering, group)
		s.comm(-s.buffer)
		s.buffer = 0
	}
	return s.prefetch(pending[1:])
}

// reduceGrads is a group's post_backward: its parameters are freed, then the
// input of the reduce-scatter before, then the gradients are copied into a
// new input, and the output becomes the sharded gradients
// (_fsdp_collectives.py foreach_reduce).
func (s *shardedStep) reduceGrads(group *costmodel.Group) {
	s.comm(-group.Gathered)
	if group.Reduce == 0 {
		return // nothing in it is trained
	}
	s.comm(group.Reduce - s.reduce)
	s.reduce = group.Reduce
	s.at(reducing, group)
	s.emit(Event{Change: gradients(group.Reduced + group.LastGrad - s.whole(group))})
	s.at(reducing, group)
	gone := group.LastGrad
	if s.accumulates() && s.t.Workload.Strategy.Traits().Groups < 2 {
		gone += group.Reduced // added to what was there; HSDP's all-reduce holds it to the end
	}
	s.emit(Event{Change: gradients(-gone)})
}

// whole are the gradients that the group's backward left.
func (s *shardedStep) whole(group *costmodel.Group) int64 {
	var sum int64
	for _, u := range group.Units {
		sum += s.units[u : u+1].totals().grads
	}
	return sum
}

// update is the optimizer's step.
func (s *shardedStep) update() {
	s.comm(-s.reduce)
	s.reduce = 0
	if s.accumulates() && s.t.Workload.Strategy.Traits().Groups > 1 {
		s.emit(Event{Change: gradients(-s.reduced)})
	}
	s.emit(Event{Over: activations(s.units.totals().step), What: "optimizer step"})
}
