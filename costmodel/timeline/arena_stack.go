package timeline

import "github.com/devmap-dev/devmap/costmodel"

// arenaStack is the stack of one micro-batch through a device's runs so far: their saved bytes and
// gradients, and the most in a forward and in a backward. A later run lies above the earlier saved
// bytes; an earlier run's backward lies above the later gradients.
type arenaStack struct{ saved, grads, forward, backward int64 }

func (stack arenaStack) join(next arenaStack) arenaStack {
	return arenaStack{
		saved: stack.saved + next.saved, grads: stack.grads + next.grads,
		forward:  max(stack.forward, stack.saved+next.forward),
		backward: max(stack.backward+next.grads, stack.saved+next.backward),
	}
}

// size is the most at any moment: the gradients alone at the optimizer's step.
func (stack arenaStack) size() int64 { return max(stack.forward, stack.backward, stack.grads) }

// arenaStacks answer for the stack of any run of units.
type arenaStacks struct {
	// writes is a unit's forward with the input that it writes, above the bytes saved before all
	// units. The same without that input is leaves, for an output that leaves the run. Its
	// backward, less the gradients of earlier units, is back.
	writes, leaves, back sparse
}

func newArenaStacks(units []costmodel.Unit, sums []arenaSums) arenaStacks {
	count := len(units)
	writes, leaves, back := make([]int64, count), make([]int64, count), make([]int64, count)
	reach := int64(0) // the end of the next input
	for i := count - 1; i >= 0; i-- {
		regions := &units[i].Regions
		saved := sums[i+1].saved
		leaves[i] = saved + regions.Forward
		writes[i] = max(saved, reach) + regions.Forward
		back[i] = saved + regions.Backward - sums[i].grads
		if regions.Remade > 0 {
			back[i] = max(back[i], leaves[i]-sums[i+1].grads)
		}
		if regions.Input > 0 {
			reach = sums[i].saved + regions.Input
		}
	}
	return arenaStacks{writes: newSparse(writes), leaves: newSparse(leaves), back: newSparse(back)}
}

// of is the stack of a run; keeps is the last unit before its end that keeps its
// input. The units from there on write what leaves the run.
func (stacks *arenaStacks) of(at costmodel.Interval, keeps int, sums []arenaSums) arenaStack {
	begin, end := &sums[at.First], &sums[at.End]
	keeps = max(keeps, at.First)
	out := arenaStack{
		saved: end.saved - begin.saved, grads: end.grads - begin.grads,
		forward:  stacks.leaves.max(keeps, at.End) - begin.saved,
		backward: stacks.back.max(at.First, at.End) + end.grads - begin.saved,
	}
	if at.First < keeps {
		out.forward = max(out.forward, stacks.writes.max(at.First, keeps)-begin.saved)
	}
	return out
}
