package timeline

import "github.com/devmap-dev/devmap/costmodel"

// runBackward goes through the groups from the last to the first. The
// gradient of the loss reaches the root's hook first, which prefetches the
// last block's parameters (_fsdp_param_group.py pre_backward).
func (s *shardedWalker) runBackward() {
	order := s.order()
	pending := s.prefetch(order)
	for i := len(s.units) - 1; i >= 0; i-- {
		g := s.groups[i]
		s.stream = s.units[i].Output
		if g != nil {
			pending = s.arrive(g, pending)
		}
		s.backward(s.units[i])
		if g != nil {
			s.reduceGrads(g)
		}
	}
	s.stream = 0
	// The root's inputs need no gradient, so that its gradients are reduced by
	// the callback at the end (_fsdp_state.py _root_post_backward_final_callback).
	if s.root != nil {
		s.reduceGrads(s.root)
	}
	s.finish()
}

// order are the groups that a backward gathers again, the last first.
func (s *shardedWalker) order() []*costmodel.Group {
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
func (s *shardedWalker) prefetch(next []*costmodel.Group) []*costmodel.Group {
	if len(next) > 0 && !next[0].Kept {
		s.gather(next[0])
		s.buffer = next[0].Buffer
	}
	return next
}

// arrive is a group's pre_backward: its parameters are copied out of the
// prefetched buffer, which is freed, and the group before it is prefetched.
func (s *shardedWalker) arrive(g *costmodel.Group, pending []*costmodel.Group) []*costmodel.Group {
	if !g.Kept {
		s.comm(g.Gathered)
		s.at("gather of " + g.Name)
		s.comm(-s.buffer)
		s.buffer = 0
	}
	return s.prefetch(pending[1:])
}

// reduceGrads is a group's post_backward: its parameters are freed, then the
// input of the reduce-scatter before, then the gradients are copied into a
// new input, and the output becomes the sharded gradients
// (_fsdp_collectives.py foreach_reduce).
func (s *shardedWalker) reduceGrads(g *costmodel.Group) {
	s.comm(-g.Gathered)
	if g.Reduce == 0 {
		return // nothing in it is trained
	}
	s.comm(-s.reduce)
	s.reduce = g.Reduce
	s.comm(g.Reduce)
	at := "reduce-scatter of " + g.Name
	s.at(at)
	s.now.Grads -= s.whole(g) - g.LastGrad
	s.now.Grads += g.Reduced
	s.at(at)
	s.now.Grads -= g.LastGrad
	if accumulates(s.t) && s.t.Workload.Strategy.Traits().Groups < 2 {
		s.now.Grads -= g.Reduced // added to what was there; HSDP's all-reduce holds it to the end
	}
}

// whole are the gradients that the group's backward left.
func (s *shardedWalker) whole(g *costmodel.Group) int64 {
	var n int64
	for _, u := range g.Units {
		for i := range s.units[u].Steps {
			n += s.units[u].Steps[i].Grads
		}
	}
	return n
}

// finish is the optimizer's step.
func (s *shardedWalker) finish() {
	s.comm(-s.reduce)
	s.reduce = 0
	if accumulates(s.t) && s.t.Workload.Strategy.Traits().Groups > 1 {
		s.now.Grads -= s.reduced
	}
	var step int64
	for _, u := range s.units {
		step += u.StepTransient
	}
	s.see("optimizer step", step, 0)
}
