package timeline

import "github.com/devmap-dev/devmap/costmodel"

func (s *shardedWalker) runForward() {
	s.enter(s.root)
	for i, u := range s.units {
		s.enter(s.groups[i])
		s.forward(u)
		s.leave(s.groups[i])
		s.passes(u)
	}
	s.stream = 0 // the outputs are in the head's figures
}

// passes notes what u hands to the next unit, where no unit's figures hold it
// already.
func (s *shardedWalker) passes(u *costmodel.Unit) {
	s.stream = 0
	if u.Handed == 0 {
		s.stream = u.Output
	}
}

// enter gathers a group before its forward. The buffer of the all-gather
// before is freed when the new one has been issued (_fsdp_param_group.py
// wait_for_unshard: implicit prefetch), so that two are alive at once.
func (s *shardedWalker) enter(g *costmodel.Group) {
	if g == nil {
		return
	}
	s.gather(g)
	s.comm(-s.buffer)
	s.buffer = g.Buffer
	s.comm(g.Gathered)
	s.at("gather of " + g.Name)
}

// gather issues an all-gather (_fsdp_collectives.py foreach_all_gather): the
// cast part is freed when its copy is in the output.
func (s *shardedWalker) gather(g *costmodel.Group) {
	s.comm(g.Buffer + g.CopyIn)
	s.at("gather of " + g.Name)
	s.comm(-g.CopyIn)
}

// leave frees a group's whole parameters after its forward; the root's stay
// (_fsdp_state.py _lazy_init: post_forward_mesh_info is None).
func (s *shardedWalker) leave(g *costmodel.Group) {
	if g != nil && !g.Kept {
		s.comm(-g.Gathered)
	}
}

// end is the end of forward: generation's last token gathers every group
// again. The last buffer goes when the root's forward returns
// (_fsdp_state.py _post_forward), after the head and the loss.
func (s *shardedWalker) end(k *Resident) {
	grown := s.ripen(s.units)
	for i, u := range s.units {
		if grown {
			s.enter(s.groups[i])
		}
		s.lateIn(u, grown)
		if grown {
			s.leave(s.groups[i])
		}
	}
	s.now.Activations += k.Output
	s.see("end of forward", 0, 0)
	if k.OutputDropped {
		s.now.Activations -= k.Output
	}
	s.comm(-s.buffer)
	s.buffer = 0
}
