package timeline

import "github.com/devmap-dev/devmap/costmodel"

// stageShards are the parameter groups that replicas of a pipeline's stage shard (FSDP2 without
// resharding). The first micro-batch's forward gathers a unit's parameters, until the last backward
// has run. Then each group in turn frees them and reduces its whole gradients. Source: torch 2.11,
// distributed/pipelining/stage.py, backward_maybe_with_nosync and perform_reduce_grad;
// fsdp/_fully_shard/_fsdp_param_group.py.
type stageShards struct {
	groups []*costmodel.Group // by unit of the table; nil: it has no parameters
	// before is the buffer of the all-gather before a unit's, which stays until the next is issued.
	// For a stage's first unit it is another stage's, and adds to no peak: nothing is gathered yet.
	before []int64
}

// newStageShards are a table's groups; nil if its stages shard nothing.
func newStageShards(table *costmodel.Table) *stageShards {
	if len(table.Groups) == 0 || !table.Workload.Strategy.Traits().Staged {
		return nil
	}
	out := &stageShards{groups: make([]*costmodel.Group, len(table.Units)), before: make([]int64, len(table.Units))}
	for i := range table.Groups {
		out.groups[table.Groups[i].Units[0]] = &table.Groups[i]
	}
	var last int64
	for unit, group := range out.groups {
		if group != nil {
			out.before[unit], last = last, group.Buffer
		}
	}
	return out
}

// forward is a unit's in the first micro-batch, which gathers its parameters.
func (shards *stageShards) forward(unit *costmodel.Unit, at int, emit func(stepEvent)) {
	group := shards.groups[at]
	if group == nil {
		unitList{unit}.forward(emit)
		return
	}
	emit(stepEvent{Over: buffers(group.Buffer + group.CopyIn + shards.before[at]), What: gathering, Layer: group.Name})
	emit(stepEvent{Change: buffers(group.Gathered), Over: buffers(group.Buffer), What: gathering, Layer: group.Name})
	unitList{unit}.forward(func(event stepEvent) {
		event.Over.CommBuffers += group.Buffer
		emit(event)
	})
}

// reduce is the end of a unit's last backward. It frees the parameters and copies the gradients to
// a reduce-scatter's input; the output is the rank's shard of them.
func (shards *stageShards) reduce(unit *costmodel.Unit, at int, emit func(stepEvent)) {
	group := shards.groups[at]
	if group == nil {
		return
	}
	emit(stepEvent{Change: buffers(-group.Gathered), Over: buffers(group.Reduce), What: reducing, Layer: group.Name})
	dropGrads(unit, emit)
	emit(stepEvent{Change: gradients(group.Reduced), Over: costmodel.Memory{Grads: group.LastGrad, CommBuffers: group.Reduce + group.Staged}, What: reducing, Layer: group.Name})
}

// summarise adds to a unit's summary what its group makes of it.
func (shards *stageShards) summarise(summary *Summary, unit *costmodel.Unit, at int) {
	if shards == nil {
		return
	}
	var reading folding
	shards.forward(unit, at, reading.add)
	summary.Gathering = reading.take().Peak
	shards.reduce(unit, at, reading.add)
	reduced := reading.take()
	summary.Reducing = reduced.Peak - reduced.Net
	if group := shards.groups[at]; group != nil {
		summary.Gathered, summary.Reduced = group.Gathered, reduced.Net+group.Gathered+summary.Grads
	}
}

// shardedList are the units of a stage; the first one is a table's.
type shardedList struct {
	unitList
	shards *stageShards
	first  int
}

// gather is the first micro-batch's forward.
func (all shardedList) gather(emit func(stepEvent)) {
	for i, unit := range all.unitList {
		all.shards.forward(unit, all.first+i, emit)
	}
}

// reduce is what follows the last backward.
func (all shardedList) reduce(emit func(stepEvent)) {
	for i, unit := range all.unitList {
		all.shards.reduce(unit, all.first+i, emit)
	}
}

// sharing is a stretch with parameters that replicas shard.
type sharing interface {
	gather(emit func(stepEvent))
	reduce(emit func(stepEvent))
}

// shardFolds are the folds of the first forward, and of the reduction.
func (summary *Summary) shardFolds() (gather, reduce outcome) {
	gather = outcome{Net: summary.Saved + summary.UntilBodyEnd + summary.Gathered, Peak: summary.Gathering}
	net := summary.Reduced - summary.Gathered - summary.Grads
	return gather, outcome{Net: net, Peak: net + summary.Reducing}
}

// shared reports a stretch in which something is gathered, or that is part of such a stage.
func (summary *Summary) shared() bool { return max(summary.Gathering, summary.Gathered) > 0 }

func (summary *Summary) gather(emit func(stepEvent)) {
	gather, _ := summary.shardFolds()
	emit(gather.event("forward"))
}

func (summary *Summary) reduce(emit func(stepEvent)) {
	_, reduce := summary.shardFolds()
	emit(reduce.event("reduction"))
}

// chainShards answer for the same of any stretch of a chain.
type chainShards struct {
	gathered, reduced []int64 // of the units before each
	gather, reduce    folds
}

// share prepares the sharding figures of a chain's units.
func (chain *unitChain) share(shards *stageShards, units []costmodel.Unit) {
	if shards == nil {
		return
	}
	count := len(units)
	gather, reduce := make([]outcome, count), make([]outcome, count)
	out := &chainShards{gathered: make([]int64, count+1), reduced: make([]int64, count+1)}
	for at := range units {
		summary := chain.summary(at, at+1)
		shards.summarise(&summary, &units[at], at)
		gather[at], reduce[at] = summary.shardFolds()
		out.gathered[at+1], out.reduced[at+1] = out.gathered[at]+summary.Gathered, out.reduced[at]+summary.Reduced
	}
	out.gather, out.reduce = newFolds(gather), newFolds(reduce)
	chain.shards = out
}

// fill sets the sharding figures of a stretch.
func (shards *chainShards) fill(summary *Summary, a, b int) {
	if shards == nil {
		return
	}
	summary.Gathered, summary.Reduced = shards.gathered[b]-shards.gathered[a], shards.reduced[b]-shards.reduced[a]
	summary.Gathering = shards.gather.of(a, b)
	_, reduce := summary.shardFolds()
	summary.Reducing = shards.reduce.of(a, b) - reduce.Net
}
