package zero

import "slices"

// borrow notes a frozen parameter that a recomputed block gathers during a module's backward, which
// releases it (update_recompute_parameters).
func (run *coordinator) borrow(param int, step *Step) {
	if step.Backward || len(run.backward) == 0 || !run.trace.Params[param].Frozen {
		return
	}
	to := run.backward[len(run.backward)-1]
	run.borrowed[to] = append(run.borrowed[to], param)
}

// pass removes a module's parameters from the queue.
func (run *coordinator) pass(params []int) {
	open := 0
	for _, param := range params {
		if run.skipped[param] < run.at {
			open++
		}
	}
	for ; open > 0 && run.queued < len(run.trace.queue); open-- {
		next := run.trace.queue[run.queued]
		run.queued++
		run.skipped[next.param] = next.at
	}
}

// prefetch gathers the next modules' parameters: whole ones until the bucket is full or the limit
// of live parameters is reached. Every module's entry does so, even without parameters, so it runs
// ahead up to that limit.
func (run *coordinator) prefetch() {
	if run.limits.Prefetch <= 0 {
		return
	}
	free := min(run.limits.Live-run.live, run.limits.Prefetch)
	var ahead []int
	var elements int64
	for run.queued < len(run.trace.queue) && elements < free {
		next := run.trace.queue[run.queued]
		run.queued++
		run.skipped[next.param] = max(run.skipped[next.param], next.at)
		if run.state[next.param] == cut && !slices.Contains(ahead, next.param) {
			ahead = append(ahead, next.param)
			elements += run.trace.Params[next.param].Numel
		}
	}
	if len(ahead) > 0 {
		run.gather(ahead)
	}
}

// release is release_sub_module.
func (run *coordinator) release(step *Step) {
	own := step.Params
	for _, param := range own {
		delete(run.active[param], step.Module)
		if run.first || !run.persists(param) {
			run.free(param)
		}
	}
	if !step.Backward {
		return
	}
	for _, param := range run.borrowed[step.Module] {
		delete(run.active[param], step.Module)
		if !run.trace.Params[param].Persistent {
			run.free(param)
		}
	}
	delete(run.borrowed, step.Module)
	if k := slices.Index(run.backward, step.Module); k >= 0 {
		run.backward = slices.Delete(run.backward, k, k+1)
	}
}

// persists reports that a parameter stays after its module (__params_to_release). It is persistent,
// or prefetching has passed a later use and would not gather it again, or a use is within the reuse
// distance.
func (run *coordinator) persists(param int) bool {
	if run.trace.Params[param].Persistent || run.skipped[param] > run.at {
		return true
	}
	next, ok := run.trace.next(param, run.at)
	return ok && run.trace.sum[next]-run.trace.sum[run.at] < run.limits.Reuse
}

// free gives up a gathered parameter that no module is using.
func (run *coordinator) free(param int) {
	if run.state[param] != gathered || len(run.active[param]) > 0 {
		return
	}
	run.state[param] = cut
	run.live -= run.trace.Params[param].Numel
	run.hold(-run.gathered[param])
	run.gathered[param] = 0
	run.letGo(run.blocks[param])
	run.blocks[param] = nil
}
