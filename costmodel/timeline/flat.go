package timeline

import "github.com/devmap-dev/devmap/costmodel"

// flatStep is a step of one rank of FSDP1 (torch 2.11, distributed/fsdp/
// _runtime_utils.py): each group is one flat parameter, gathered into place.
type flatStep struct {
	shardedStep
	gathered map[*costmodel.Group]bool
}

func (step *flatStep) run() {
	step.emit(stepEvent{Change: gradients(step.last()), Owner: ofLastStep})
	for i := range step.table.Groups {
		step.emit(stepEvent{Change: gradients(step.table.Groups[i].Retained), Owner: step.table.Groups[i].Name})
	}
	step.enterFlat(step.root)
	for i := range step.units {
		group := step.groups[i]
		if begins(group, i) {
			step.enterFlat(group)
		}
		step.units[i : i+1].forward(step.emit)
		if finishes(group, i) { // the root's stay (_post_forward_reshard)
			step.release(group)
		}
	}
	step.units.bodyEnd(step.emit)
	step.units.head(step.emit)
	endForward(step.resident, step.last(), step.emit)
	if step.table.Workload.Mode == costmodel.Train {
		step.flatBackward()
	}
}

// enterFlat gathers a flat parameter (_unshard): the rank's shard is cast first, and that copy is
// freed after the gather.
func (step *flatStep) enterFlat(group *costmodel.Group) {
	if group == nil || step.gathered[group] {
		return
	}
	step.gathered[group] = true
	step.comm(ofGather, group.CopyIn)
	step.comm(group.Name, group.Gathered)
	step.at(gathering, group)
	step.comm(ofGather, -group.CopyIn)
}

func (step *flatStep) release(group *costmodel.Group) {
	if group != nil && step.gathered[group] {
		step.comm(group.Name, -group.Gathered)
		step.gathered[group] = false
	}
}

// flatBackward: a hook on the root's outputs runs before the loss's backward, a hook on a block's
// output before the block's. With BACKWARD_PRE each also gathers the group that ran before
// (_pre_backward_hook).
func (step *flatStep) flatBackward() {
	pending := step.order()
	ahead := func() {
		if step.table.Prefetches && len(pending) > 0 {
			step.enterFlat(pending[0])
		}
	}
	if step.root != nil {
		step.enterFlat(step.root)
		ahead()
	}
	for i := len(step.units) - 1; i >= 0; i-- {
		group, unit := step.groups[i], step.units[i]
		if finishes(group, i) {
			step.enterFlat(group)
			pending = pending[1:]
			ahead()
		}
		unitBackward(unit, step.emit)
		if begins(group, i) {
			step.reduceFlat(group)
		}
	}
	if step.root != nil {
		step.reduceFlat(step.root)
	}
	step.emit(stepEvent{Over: activations(step.units.totals().step), What: "optimizer step"})
}

// reduceFlat is the end of a group's backward. SplitWithSizesBackward joins the gradients of all
// its parameters (_flat_param.py, _get_unflat_views_aligned). _post_backward_hook then frees the
// parameters, reduces, and casts the result to the shard's type.
func (step *flatStep) reduceFlat(group *costmodel.Group) {
	step.emit(stepEvent{Change: gradients(group.Joined), What: "join of gradients of ", Layer: group.Name})
	step.drop(group)
	step.release(group)
	passing := int64(0)
	if group.Reduce != group.Joined {
		passing = group.Reduce // a copy in the type of the reduction
	}
	step.emit(stepEvent{Change: gradients(group.Staged + group.Reduced), Over: gradients(passing), What: reducing, Layer: group.Name})
	step.emit(stepEvent{Change: gradients(-group.Joined - group.Staged - group.Retained), Owner: group.Name})
}
