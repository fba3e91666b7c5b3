package estimate

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// leftAfterUnload is what stays allocated on the first rank after `del model`
// while a reference to one wrapped module is left: `for block in
// model.layers: fully_shard(block)` leaves one in block. Every wrapped module
// holds its FSDPState, and lazy initialisation gives all of them one context
// whose all_states lists every state (torch 2.11,
// fsdp/_fully_shard/_fsdp_state.py, FSDPState._lazy_init and
// _init_shared_state), so that all shards and the gradients that are not None
// stay with it, through garbage collection and destroy_process_group.
func (e *estimator) leftAfterUnload() (shards, grads int64) {
	for i := range e.g.Layers {
		l := &e.g.Layers[i]
		for j := range l.Params {
			t := &l.Params[j]
			if t.Tied() {
				continue
			}
			n := e.stored(t)
			if len(t.Shape) > 0 && t.Shape[0] > 0 { // cut along the first dimension, rounded up
				rows := (t.Shape[0] + e.w.ShardDegree - 1) / e.w.ShardDegree
				n = n / t.Shape[0] * rows
			}
			shards += n
			if e.w.Mode == costmodel.Train && t.DType.Float() && !e.frozen() {
				grads += n
			}
		}
	}
	return shards, grads
}

// warnUnload applies to FSDP, whose modules point to each other.
func (e *estimator) warnUnload() {
	if !e.w.Strategy.Traits().ByBlock || e.w.ShardDegree < 1 {
		return
	}
	shards, grads := e.leftAfterUnload()
	what := fmt.Sprintf("shards %v", costmodel.Bytes(shards))
	if grads > 0 {
		what += fmt.Sprintf(", gradients that are not None %v", costmodel.Bytes(grads))
	}
	e.warnings = append(e.warnings, fmt.Sprintf(
		"after `del model` %v stay on every GPU (%s) while one wrapped block is still referenced, as the variable of the fully_shard loop is: del it too, then gc.collect()",
		costmodel.Bytes(shards+grads), what))
}
