package timeline

import "github.com/devmap-dev/devmap/costmodel"

// sharded is the engine of one rank with parameters gathered group by group: FSDP2 (torch 2.11). It
// is the first rank; others hold a little less optimizer state if rows do not divide evenly.
func sharded(table *costmodel.Table, owned unitList, resident Resident) producer {
	return func(emit func(stepEvent)) {
		step := shardedStep{table: table, units: owned, resident: &resident, groups: make([]*costmodel.Group, len(owned)), emit: emit}
		for i := range table.Groups {
			group := &table.Groups[i]
			// A tied table's gradient is in the first of two outputs, and the
			// norm's is a view of the second, which stays whole for it.
			step.reduced += group.Reduced + group.HeadReduced
			if group.Root {
				step.root = group
				continue
			}
			for _, unit := range group.Units {
				step.groups[unit] = group
			}
		}
		if resident.Prepared > 0 { // before anything else exists
			prepare(owned, resident.Prepared, emit)
		}
		start(owned, &resident, emit)
		if table.Workload.Mode == costmodel.Load {
			return
		}
		if table.Flat {
			flat := flatStep{shardedStep: step, gathered: make(map[*costmodel.Group]bool)}
			flat.run()
			return
		}
		if before := step.last(); before > 0 {
			emit(stepEvent{Change: gradients(before), Owner: ofLastStep})
		}
		if step.accumulates() {
			step.before(1)
		}
		step.forward()
		step.end()
		if table.Workload.Mode == costmodel.Train {
			runReference(&resident, emit)
			step.backward()
		}
	}
}

// prepare is a model before it is sharded: whole parameters, and the shards that are made.
func prepare(owned unitList, bytes int64, emit func(stepEvent)) {
	for _, unit := range owned {
		emit(stepEvent{Change: costmodel.Memory{Params: unit.Params + unit.Padding}, Owner: unit.Name})
		bytes -= unit.Params + unit.Padding
	}
	emit(stepEvent{Over: costmodel.Memory{Params: bytes}, What: "preparation"})
	for _, unit := range owned {
		emit(stepEvent{Change: costmodel.Memory{Params: -unit.Params - unit.Padding}, Owner: unit.Name})
	}
}

// shardedStep is a step of such a rank.
type shardedStep struct {
	table    *costmodel.Table
	units    unitList
	resident *Resident
	groups   []*costmodel.Group // by unit; nil: the root's
	root     *costmodel.Group   // or nil
	emit     func(stepEvent)

	reduced  int64 // sharded gradients of all groups
	buffer   int64 // of an all-gather, not yet freed
	reduce   int64 // input of a reduce-scatter, not yet freed
	reducing int64 // inputs of HSDP's all-reduces
	stream   int64 // what passes between units at the moment
}

// begins and finishes report the unit at which a group's forward does so.
func begins(group *costmodel.Group, unit int) bool { return group != nil && unit == group.Units[0] }

func finishes(group *costmodel.Group, unit int) bool {
	return group != nil && unit == group.Units[len(group.Units)-1]
}

// accumulates reports that a step has sharded gradients before its last backward. FSDP2 reduces in
// every micro-batch unless set_requires_gradient_sync turns reduce_grads off.
func (step *shardedStep) accumulates() bool {
	if step.table.ZeroesGradients {
		return true
	}
	return step.table.Workload.Mode == costmodel.Train && step.table.Workload.MicroBatches > 1 && !step.retains() && !step.table.Workload.HostShards
}

// last are the sharded gradients of the step before if they stay until backward.
func (step *shardedStep) last() int64 {
	if step.resident.LastGradients && step.table.Workload.MicroBatches < 2 && !step.table.Workload.HostShards {
		return step.reduced
	}
	return 0
}

// retains reports whole gradients that stay from one micro-batch to the next.
func (step *shardedStep) retains() bool {
	for _, unit := range step.units {
		if unit.ResidentGrads > 0 {
			return true
		}
	}
	return false
}

// comm changes the communication buffers of an owner.
func (step *shardedStep) comm(owner string, bytes int64) {
	step.emit(stepEvent{Change: buffers(bytes), Owner: owner})
}

// before adds so many times the sharded gradients of the micro-batches before.
func (step *shardedStep) before(times int64) {
	for i := range step.table.Groups {
		group := &step.table.Groups[i]
		step.emit(stepEvent{Change: gradients(times * (group.Reduced + group.HeadReduced)), Owner: group.Name})
	}
}

// at looks at a moment between units.
func (step *shardedStep) at(what string, group *costmodel.Group) {
	step.emit(stepEvent{Over: activations(step.stream), What: what, Layer: group.Name})
}

const (
	gathering = "gather of "
	reducing  = "reduce-scatter of "
)

func (step *shardedStep) forward() {
	step.enter(step.root)
	for i, unit := range step.units {
		if begins(step.groups[i], i) {
			step.enter(step.groups[i])
		}
		if group := step.groups[i]; group != nil && group.Repeats { // each chunk's all-gather, with the buffer before
			step.emit(stepEvent{Over: buffers(group.Buffer), What: gathering, Layer: group.Name})
		}
		step.units[i : i+1].forward(step.emit)
		if finishes(step.groups[i], i) {
			step.leave(step.groups[i])
		}
		// The output to the next unit, if no unit's figures hold it already.
		step.stream = 0
		if unit.CheckpointedOutput == 0 {
			step.stream = unit.Output
		}
	}
	step.stream = 0 // the outputs are in the head's figures
}

// enter gathers a group before its forward. The last all-gather's buffer is freed when the new one
// has been copied out (_fsdp_param_group.py, wait_for_unshard), so two are alive at once.
func (step *shardedStep) enter(group *costmodel.Group) {
	if group == nil {
		return
	}
	step.gather(group)
	step.comm(group.Name, group.Gathered)
	step.at(gathering, group)
	step.comm(ofGather, -step.buffer)
	step.buffer = group.Buffer
}

// gather issues an all-gather (_fsdp_collectives.py foreach_all_gather): the
// cast part is freed when its copy is in the output.
func (step *shardedStep) gather(group *costmodel.Group) {
	step.comm(ofGather, group.Buffer+group.CopyIn)
	step.at(gathering, group)
	step.comm(ofGather, -group.CopyIn)
}

// leave frees a group's whole parameters after its forward; the root's stay
// (_fsdp_state.py _lazy_init: post_forward_mesh_info is None).
func (step *shardedStep) leave(group *costmodel.Group) {
	if group != nil && !group.RemainsGathered {
		step.comm(group.Name, -group.Gathered)
	}
}

// end is the end of forward: generation's last token gathers every group again. The last buffer
// goes when the root's forward returns (_fsdp_state.py _post_forward), after the head and the loss.
func (step *shardedStep) end() {
	step.units.bodyEnd(step.emit)
	grown := step.units.grows()
	for i := range step.units {
		if grown {
			step.enter(step.groups[i])
		}
		step.units[i:i+1].headOf(grown, step.emit)
		if grown {
			step.leave(step.groups[i])
		}
	}
	endForward(step.resident, step.last(), step.emit)
	step.comm(ofGather, -step.buffer)
	step.buffer = 0
	if step.root != nil {
		step.leave(step.root)
	}
	last := len(step.units) - 1
	step.lossOutside(step.groups[last], step.units[last])
}

// backward goes through the groups from the last to the first. The gradient of the loss reaches the
// root's hook first, which prefetches the group before (_fsdp_param_group.py pre_backward).
func (step *shardedStep) backward() {
	pending := step.order()
	last := len(step.units) - 1
	rest := step.units[last]
	if step.root != nil {
		rest = step.lossBeforeRoot(rest)
		pending = step.again(step.root, pending, rest)
	}
	for i := last; i >= 0; i-- {
		group, unit := step.groups[i], step.units[i]
		if i == last {
			unit = rest
		}
		step.stream = unit.Output
		if finishes(group, i) && !group.Unhooked && (!group.Late || step.gathers(group)) {
			unit = step.lossFirst(unit)
			pending = step.arrive(group, pending, unit)
		}
		unitBackward(unit, step.emit)
		step.firstChunk(group, i, pending)
		if begins(group, i) && !group.Late {
			step.reduceGrads(group)
		}
	}
	step.stream = 0
	step.comm(ofGather, -step.buffer) // of an embedding that is frozen: nothing waited for it
	step.buffer = 0
	// The inputs of these need no gradient, so that their gradients are reduced by
	// the callback at the end (_fsdp_state.py _root_post_backward_final_callback).
	if step.root != nil {
		step.reduceGrads(step.root)
	}
	for i := range step.table.Groups {
		if group := &step.table.Groups[i]; group.Late && !group.Root && step.gathers(group) {
			step.reduceGrads(group)
		}
	}
	step.update()
}

// gathers reports a late group that has parameters in backward: a frozen embedding has no backward.
func (step *shardedStep) gathers(group *costmodel.Group) bool {
	return group.Reduce > 0 || group.RemainsGathered
}

// again is the root's pre_backward, which gathers what was freed after forward.
func (step *shardedStep) again(root *costmodel.Group, pending []*costmodel.Group, unit *costmodel.Unit) []*costmodel.Group {
	if !root.RemainsGathered {
		step.freed(unit, -1)
		step.gather(root)
		step.comm(root.Name, root.Gathered)
		step.at(gathering, root)
		step.comm(ofGather, -root.Buffer)
		step.freed(unit, 1)
	}
	return step.prefetch(pending)
}

// order are the groups that a backward gathers again, the last first.
func (step *shardedStep) order() []*costmodel.Group {
	var out []*costmodel.Group
	for i := len(step.units) - 1; i >= 0; i-- {
		if finishes(step.groups[i], i) && !step.groups[i].Unhooked {
			out = append(out, step.groups[i])
		}
	}
	return out
}

// prefetch issues the all-gather of the next group in backward's order, and returns the rest.
func (step *shardedStep) prefetch(next []*costmodel.Group) []*costmodel.Group {
	if len(next) > 0 && !next[0].RemainsGathered {
		step.gather(next[0])
		step.buffer = next[0].Buffer
	}
	return next
}

// arrive is a group's pre_backward: its parameters are copied out of the
// prefetched buffer, which is freed, and the group before it is prefetched.
func (step *shardedStep) arrive(group *costmodel.Group, pending []*costmodel.Group, unit *costmodel.Unit) []*costmodel.Group {
	switch {
	case group.HeadReduce > 0: // the loss freed it, and nothing prefetches it
		step.gather(group)
		step.buffer += group.Buffer
	case !group.RemainsGathered && step.buffer == 0 && group.Buffer > 0: // nothing prefetched it
		step.gather(group)
		step.buffer = group.Buffer
	}
	if !group.RemainsGathered || group.HeadReduce > 0 {
		step.freed(unit, -1)
		step.comm(group.Name, group.Gathered)
		step.at(gathering, group)
		step.comm(ofGather, -step.buffer)
		step.buffer = 0
		step.freed(unit, 1)
	}
	if group.Repeats {
		return pending[1:]
	}
	return step.prefetch(pending[1:])
}

// reduceGrads is a group's post_backward (_fsdp_collectives.py foreach_reduce). It frees the
// parameters, then the last reduce-scatter's input. It copies the gradients into a new input; the
// output becomes the sharded gradients.
func (step *shardedStep) reduceGrads(group *costmodel.Group) {
	step.comm(group.Name, -group.Gathered)
	if group.Reduce == 0 {
		return // nothing in it is trained
	}
	step.comm(ofReduction, group.Reduce-step.reduce)
	step.reduce = group.Reduce
	step.at(reducing, group)
	step.comm(ofReduction, group.Staged)
	step.drop(group)
	step.emit(stepEvent{Change: gradients(group.Reduced + group.LastGrad), Owner: group.Name})
	step.at(reducing, group)
	if step.table.Workload.Strategy.Traits().Groups > 1 {
		step.reducing += group.Staged // the all-reduce's input stays to the end (_all_reduce_state)
	} else {
		step.comm(ofReduction, -group.Staged)
	}
	gone := group.LastGrad
	if group.Late && !step.accumulates() {
		gone += group.HeadReduced // added to the result of the loss's reduction
	}
	switch {
	case step.table.Workload.OptimizerInBackward: // _fsdp_collectives.py, foreach_reduce: the hooks of each parameter
		gone += group.Reduced
	case step.table.Workload.HostShards, step.accumulates() && step.table.Workload.Strategy.Traits().Groups < 2:
		gone += group.Reduced // added to what was there, or copied to the host; HSDP's all-reduce keeps it to the end
	}
	step.emit(stepEvent{Change: gradients(-gone), Owner: group.Name})
}

// drop frees the gradients that the group's backward left.
func (step *shardedStep) drop(group *costmodel.Group) {
	for _, unit := range group.Units {
		dropGrads(step.units[unit], step.emit)
		step.emit(stepEvent{Change: gradients(-step.units[unit].ResidentGrads), Owner: step.units[unit].Name})
	}
}

// dropGrads frees the gradients that a unit's backward left.
func dropGrads(unit *costmodel.Unit, emit func(stepEvent)) {
	for i := range unit.Layers {
		emit(stepEvent{Change: gradients(-unit.Layers[i].Grads), Owner: unit.Layers[i].Layer})
	}
}

// update is the optimizer's step.
func (step *shardedStep) update() {
	step.comm(ofReduction, -step.reduce-step.reducing)
	step.reduce, step.reducing = 0, 0
	if step.accumulates() && step.table.Workload.Strategy.Traits().Groups > 1 {
		step.before(-1)
	}
	step.emit(stepEvent{Over: activations(step.units.totals().step), What: "optimizer step"})
}
