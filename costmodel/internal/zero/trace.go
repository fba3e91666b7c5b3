package zero

// Parameter is one that stage 3 cuts and gathers.
type Parameter struct {
	Numel int64
	Bytes int64 // of one element, gathered
	// Frozen: it takes no gradient, so that no hook of one releases it.
	Frozen bool
	// Persistent: it stays gathered once it was (parameter_offload.py, mark_persistent_parameters).
	Persistent bool
}

// Step is one hook of a module: before it (its parameters are gathered) or after (released).
type Step struct {
	Module int
	Params []int // its own, by index
	// Ends: it has run. Backward: its backward, else a forward; a forward during a module's
	// backward is a recomputed block's.
	Ends, Backward bool
}

// Trace is a forward and the backward that follows, as the hooks see them. The coordinator records
// one of the first step and follows it from then on (partitioned_param_coordinator.py, reset_step).
type Trace struct {
	Params []Parameter
	Steps  []Step

	order []fetched // the modules in the order in which they are entered
	queue []use     // their parameters
	uses  [][]int   // by parameter: the modules, as places in order
	sum   []int64   // elements of all modules before this one
}

// fetched is a module entered, use one of its parameters.
type (
	fetched struct{ params []int }
	use     struct{ param, at int }
)

// record computes the coordinator's data of the whole step.
func (trace *Trace) record() {
	trace.order, trace.queue, trace.sum = nil, nil, []int64{0}
	trace.uses = make([][]int, len(trace.Params))
	for i := range trace.Steps {
		step := &trace.Steps[i]
		if step.Ends {
			continue
		}
		at, elements := len(trace.order), trace.sum[len(trace.sum)-1]
		for _, param := range step.Params {
			trace.queue = append(trace.queue, use{param, at})
			trace.uses[param] = append(trace.uses[param], at)
			elements += trace.Params[param].Numel
		}
		trace.order = append(trace.order, fetched{step.Params})
		trace.sum = append(trace.sum, elements)
	}
}

// next is the first module from a place on that reads the parameter.
func (trace *Trace) next(param, from int) (int, bool) {
	for _, at := range trace.uses[param] {
		if at >= from {
			return at, true
		}
	}
	return 0, false
}
