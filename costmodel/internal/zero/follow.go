package zero

// Memory allocates gathered parameters, block by block.
type Memory interface {
	// Gathered is a block of so many bytes.
	Gathered(bytes int64) any
	// Released gives it back.
	Released(block any)
}

// Following is a step as the coordinator follows it, hook by hook.
type Following struct {
	run *coordinator
	at  int
}

// Follow starts a step with gathered parameters in memory. The first step records the trace: it
// gathers nothing ahead and keeps nothing for later, persistent parameters neither (reset_step).
func Follow(trace *Trace, limits Limits, ranks int64, copies, first bool, memory Memory) *Following {
	run := start(trace, limits, ranks, copies)
	run.memory, run.first = memory, first
	for param := range trace.Params {
		if first && trace.Params[param].Persistent {
			run.state[param] = cut
		}
	}
	return &Following{run: run}
}

// At is the number of hooks that were called.
func (follow *Following) At() int { return follow.at }

// To calls the hooks up to the one at a place, and that.
func (follow *Following) To(place int) {
	for ; follow.at <= place; follow.at++ {
		follow.run.step(&follow.run.trace.Steps[follow.at])
	}
}

func (run *coordinator) allocate(bytes int64) any {
	if run.memory == nil || bytes == 0 {
		return nil
	}
	return run.memory.Gathered(bytes)
}

func (run *coordinator) letGo(block any) {
	if run.memory != nil && block != nil {
		run.memory.Released(block)
	}
}

// Close releases everything gathered or on its way (reset_step, _clean_inflight_param_registry).
func (follow *Following) Close() {
	run := follow.run
	for param := range run.blocks {
		if group := run.handle[param]; group != nil && len(group.params) > 1 {
			run.letGo(group.block)
			group.block = nil
		}
		run.letGo(run.blocks[param])
		run.blocks[param] = nil
	}
}
