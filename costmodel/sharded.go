package costmodel

// Group is parameters that are gathered for use and whose gradients are
// reduced together: FSDP2's parameter group (torch 2.11,
// _fsdp_param_group.py FSDPParamGroup). Sizes are bytes on one rank; all
// count the padding that makes the parts of all ranks equal.
type Group struct {
	Name  string
	Units []int // in Table.Units, those of the group that run
	// Gathered are the whole parameters in the type of compute.
	Gathered int64
	// Buffer is the all-gather's output, from which they are copied; CopyIn
	// the rank's own part of it, where that must be cast first.
	Buffer, CopyIn int64
	// Reduce is the reduce-scatter's input, Reduced its output, of which the
	// sharded gradients are views.
	Reduce, Reduced int64
	// LastGrad is the gradient that is copied into Reduce last: a loop
	// variable of foreach_reduce keeps it while Reduced is made.
	LastGrad int64
	// Root: the group of the whole model, gathered throughout.
	Root bool
	// Kept: it stays gathered from forward to backward.
	Kept bool
}

// sharded is the peak of one rank whose parameters are gathered group by
// group. The rank is the first one: where rows do not divide evenly, others
// hold a little less of the optimizer's states.
func (t *Table) sharded(units []*Unit, k Kept) Peak {
	s := shardedWalker{t: t, units: units, groups: make([]*Group, len(units))}
	for i := range t.Groups {
		g := &t.Groups[i]
		s.reduced += g.Reduced
		if g.Root {
			s.root = g
			continue
		}
		for _, u := range g.Units {
			s.groups[u] = g
		}
	}
	s.start(units, &k)
	if t.Workload.Mode == Load {
		return s.peak
	}
	if t.accumulates() {
		s.now.Grads += s.reduced // of the micro-batches before
	}
	s.runForward()
	s.end(&k)
	if t.Workload.Mode == Train {
		s.runBackward()
	}
	return s.peak
}

// accumulates reports that a step has sharded gradients before its last
// backward. FSDP2 reduces in every micro-batch (reduce_grads is true unless
// set_requires_gradient_sync turns it off).
func (t *Table) accumulates() bool {
	return t.Workload.Mode == Train && t.Workload.MicroBatches > 1
}

type shardedWalker struct {
	walker
	t      *Table
	units  []*Unit
	groups []*Group // by unit; nil: the root's
	root   *Group   // or nil

	reduced int64 // sharded gradients of all groups
	buffer  int64 // of an all-gather, not yet freed
	reduce  int64 // input of a reduce-scatter, not yet freed
	stream  int64 // what passes between units at the moment
}

// comm adds to the communication buffers.
func (s *shardedWalker) comm(n int64) { s.now.CommBuffers += n }

// at notes a moment between units.
func (s *shardedWalker) at(what string) { s.see(what, s.stream, 0) }
