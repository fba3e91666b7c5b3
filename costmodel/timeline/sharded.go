package timeline

import "github.com/devmap-dev/devmap/costmodel"

// sharded is the peak of one rank whose parameters are gathered group by
// group. The rank is the first one: where rows do not divide evenly, others
// hold a little less of the optimizer's states.
func sharded(t *costmodel.Table, units []*costmodel.Unit, k Resident) Peak {
	s := shardedWalker{t: t, units: units, groups: make([]*costmodel.Group, len(units))}
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
	if t.Workload.Mode == costmodel.Load {
		return s.peak
	}
	if accumulates(t) {
		s.now.Grads += s.reduced // of the micro-batches before
	}
	s.runForward()
	s.end(&k)
	if t.Workload.Mode == costmodel.Train {
		s.runBackward()
	}
	return s.peak
}

// accumulates reports that a step has sharded gradients before its last
// backward. FSDP2 reduces in every micro-batch (reduce_grads is true unless
// set_requires_gradient_sync turns it off).
func accumulates(t *costmodel.Table) bool {
	return t.Workload.Mode == costmodel.Train && t.Workload.MicroBatches > 1
}

type shardedWalker struct {
	walker
	t      *costmodel.Table
	units  []*costmodel.Unit
	groups []*costmodel.Group // by unit; nil: the root's
	root   *costmodel.Group   // or nil

	reduced int64 // sharded gradients of all groups
	buffer  int64 // of an all-gather, not yet freed
	reduce  int64 // input of a reduce-scatter, not yet freed
	stream  int64 // what passes between units at the moment
}

// comm adds to the communication buffers.
func (s *shardedWalker) comm(n int64) { s.now.CommBuffers += n }

// at notes a moment between units.
func (s *shardedWalker) at(what string) { s.see(what, s.stream, 0) }
