package engine

import "github.com/devmap-dev/devmap/costmodel/internal/zero"

// hooks records the hooks of a step in calling order, and each layer's place in it.
type hooks struct {
	trace    *zero.Trace
	called   []call       // by step
	forward  map[int]span // by layer
	again    map[int]span // recomputed
	backward map[int]span
	now      map[int]span
	pending  *module // the block that the next leaf's backward recomputes
	left     []*module
	loss     int // the step at which the loss's own backward begins
}

// call is a hook's place: a layer of the graph or -1, and the path below it.
type call struct {
	layer int
	below string
}

// span is from the first step of a layer to its last.
type span struct{ first, last int }

// hooksOf is the trace of a forward and of its backward, in reverse order of the modules.
func hooksOf(root *module, trace *zero.Trace, train, recomputes bool) *hooks {
	run := &hooks{trace: trace, forward: map[int]span{}, again: map[int]span{}, backward: map[int]span{}}
	run.now = run.forward
	run.ahead(root)
	if !train {
		return run
	}
	run.now = run.backward
	run.back(root, recomputes)
	for _, node := range run.left { // backward_epilogue
		run.step(node, zero.Step{Ends: true, Backward: true})
	}
	return run
}

func (run *hooks) step(node *module, step zero.Step) {
	step.Module, step.Params = node.id, node.params
	at := len(run.trace.Steps)
	run.trace.Steps = append(run.trace.Steps, step)
	run.called = append(run.called, call{node.layer, node.below})
	if node.layer < 0 {
		return
	}
	where, ok := run.now[node.layer]
	if !ok {
		where.first = at
	}
	where.last = at
	run.now[node.layer] = where
}

func (run *hooks) ahead(node *module) {
	run.step(node, zero.Step{})
	for _, next := range node.calls {
		run.ahead(next)
	}
	run.step(node, zero.Step{Ends: true})
}

// back is a module's backward. The next hook depends on the module's input: if that needs no
// gradient, the module is released at the end of the whole backward.
func (run *hooks) back(node *module, recomputes bool) {
	if node.still {
		return
	}
	run.step(node, zero.Step{Backward: true})
	if run.loss == 0 {
		run.loss = len(run.trace.Steps)
	}
	if node.block && recomputes {
		run.pending = node
	}
	if len(node.calls) == 0 && run.pending != nil {
		block := run.pending
		run.pending = nil
		current := run.now
		run.now = run.again
		run.until(block, node)
		run.now = current
	}
	for k := len(node.calls) - 1; k >= 0; k-- {
		run.back(node.calls[k], recomputes)
	}
	run.step(node, zero.Step{Ends: true, Backward: true})
}

// until reruns a block's forward up to the module whose backward comes first: its last kept tensor
// is made there, and recomputation stops (torch/utils/checkpoint.py, _StopRecomputationError).
func (run *hooks) until(node, last *module) bool {
	run.step(node, zero.Step{})
	if node == last {
		return true
	}
	for _, next := range node.calls {
		if run.until(next, last) {
			return true
		}
	}
	run.step(node, zero.Step{Ends: true})
	return false
}
