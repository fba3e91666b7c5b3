package zero

import "github.com/devmap-dev/devmap/costmodel/internal/allocator"

// Limits are the limits of gathering, in elements (zero/config.py).
type Limits struct {
	Prefetch int64 `json:"stage3_prefetch_bucket_size"`
	Live     int64 `json:"stage3_max_live_parameters"`
	Reuse    int64 `json:"stage3_max_reuse_distance"`
}

// Moment is the gathered bytes of one rank at one step of a trace, without persistent parameters: Most
// while it ran, After it. Live are the elements gathered or in transit, as the coordinator counts.
type Moment struct{ Most, After, Live int64 }

type status int

const (
	cut status = iota
	inFlight
	gathered
)

// coordinator models the memory of PartitionedParameterCoordinator
// (zero/partitioned_param_coordinator.py). It gathers a module's parameters before it runs, then
// the next modules', and releases those without a use soon.
type coordinator struct {
	trace  *Trace
	limits Limits
	ranks  int64
	copies bool // parts lie in host memory: a single rank copies them too

	state    []status
	handle   []*gather
	gathered []int64 // bytes by parameter, while gathered
	skipped  []int   // by parameter: the last use that prefetching has passed (most recent step id)
	active   []map[int]bool
	backward []int         // modules whose backward is under way, the last one last
	borrowed map[int][]int // frozen parameters that a recomputed block gathered, by such a module
	queued   int           // of the trace's queue
	at       int           // modules entered
	live     int64         // elements that are gathered or on their way

	now, most int64

	memory Memory // or nil: only bytes are counted
	blocks []any  // gathered blocks by parameter
	first  bool   // the trace is being recorded: nothing is known of what comes
}

// gather is one collective.
type gather struct {
	params []int
	buffer int64 // from which several parameters are copied out; one alone is its own
	waited bool
	left   int // of the parameters, those that no module has waited for
	block  any
}

// Walk is the gathered bytes at each step of a trace. Ranks share each parameter; copies: in host
// memory.
func Walk(trace *Trace, limits Limits, ranks int64, copies bool) []Moment {
	run := start(trace, limits, ranks, copies)
	out := make([]Moment, len(trace.Steps))
	for i := range trace.Steps {
		out[i] = run.step(&trace.Steps[i])
	}
	return out
}

// start is a coordinator ahead of a trace's first step.
func start(trace *Trace, limits Limits, ranks int64, copies bool) *coordinator {
	trace.record()
	count := len(trace.Params)
	run := &coordinator{
		trace: trace, limits: limits, ranks: ranks, copies: copies,
		state: make([]status, count), handle: make([]*gather, count), gathered: make([]int64, count), skipped: make([]int, count),
		active: make([]map[int]bool, count), borrowed: make(map[int][]int), blocks: make([]any, count),
	}
	for param := range trace.Params {
		run.skipped[param] = -1
		run.active[param] = make(map[int]bool)
		if trace.Params[param].Persistent {
			run.state[param] = gathered // after the step before (stage3.py, _post_step)
		}
	}
	return run
}

func (run *coordinator) step(step *Step) Moment {
	run.most = run.now
	if step.Ends {
		run.release(step)
	} else {
		run.fetch(step)
	}
	return Moment{Most: run.most, After: run.now, Live: run.live}
}

func (run *coordinator) hold(bytes int64) {
	run.now += bytes
	run.most = max(run.most, run.now)
}

// size is a gathered parameter with the padding of its shards. Blocks for several are cut from one
// another, without rounding to segments.
func (run *coordinator) size(param int) int64 {
	each := &run.trace.Params[param]
	if run.ranks == 1 && !run.copies { // a view of the only part
		return 0
	}
	bytes := (each.Numel + run.ranks - 1) / run.ranks * run.ranks * each.Bytes
	return (bytes + 511) / 512 * 512
}

// fetch is fetch_sub_module.
func (run *coordinator) fetch(step *Step) {
	if step.Backward {
		run.backward = append(run.backward, step.Module)
	}
	run.gather(step.Params)
	for _, param := range step.Params {
		run.active[param][step.Module] = true
		run.borrow(param, step)
		if run.handle[param] != nil {
			run.wait(param)
		}
	}
	if !run.first {
		run.pass(step.Params)
		run.prefetch()
	}
	run.at++
}

// gather starts a collective for parameters that are cut (partition_parameters.py,
// all_gather_coalesced): one alone is gathered in place, several into one buffer.
func (run *coordinator) gather(params []int) {
	var group gather
	for _, param := range params {
		if run.state[param] != cut {
			continue
		}
		run.state[param] = inFlight
		run.handle[param] = &group
		group.params = append(group.params, param)
		run.live += run.trace.Params[param].Numel
		group.buffer += run.size(param)
	}
	group.left = len(group.params)
	asked := group.buffer
	if group.left == 1 && group.buffer > 0 {
		if run.trace.Params[group.params[0]].Numel >= run.limits.Prefetch { // larger than any buffer of several
			group.buffer += allocator.Rounding(group.buffer)
		}
		run.gathered[group.params[0]] = group.buffer
	}
	run.hold(group.buffer)
	group.block = run.allocate(asked)
	if group.left == 1 && run.copies { // the part, on its way from the host (_all_gather_sequential)
		run.letGo(run.allocate(asked / run.ranks))
	}
	if group.left == 1 {
		run.blocks[group.params[0]] = group.block
	}
}

// wait is a handle's wait: all of its parameters are copied out at once, and
// the buffer stays until each of them was waited for.
func (run *coordinator) wait(param int) {
	group := run.handle[param]
	several := len(group.params) > 1 && run.ranks > 1
	if !group.waited && several {
		for _, other := range group.params {
			run.gathered[other] = run.size(other)
			run.hold(run.gathered[other])
			run.blocks[other] = run.allocate(run.gathered[other])
		}
	}
	if !group.waited {
		group.waited = true
		for _, other := range group.params {
			run.state[other] = gathered
		}
	}
	group.left--
	if group.left == 0 && several {
		run.hold(-group.buffer)
		run.letGo(group.block)
	}
	run.handle[param] = nil
}
