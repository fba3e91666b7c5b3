package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
)

// deepspeed is DeepSpeed's ZeRO (0.19.8): model states as
// deepspeed/runtime/zero/stage_1_and_2.py and stage3.py keep them. Under mixed
// precision the module itself is cast (engine.py, _configure_distributed_model)
// and runs without autocast.
func deepspeed(w *costmodel.Workload) engine {
	return engine{compute: gathered, weights: gathered, cut: w.Strategy == costmodel.Zero3, finish: zero}
}

// checkZero refuses degrees that are no number of GPUs.
func checkZero(w *costmodel.Workload) error {
	if w.Runtime == costmodel.DeepSpeed && w.ShardDegree < 1 {
		return &costmodel.FieldError{Field: "shard_degree", Msg: costmodel.Messagef("%d is no number of GPUs; the divisors of %d work", w.ShardDegree, w.World)}
	}
	return nil
}

// zero cuts states over the ranks and adds what ZeRO 3 gathers.
func zero(e *estimator, t *costmodel.Table) {
	t.OutputsDropped = true
	if e.w.Strategy == costmodel.Zero3 {
		t.Buckets += e.zeroGathered()
	}
	if e.w.Mode == costmodel.Train {
		z := e.zeroStates(t)
		t.Units[0].StepTransient = z.step()
		e.warnZero()
	}
}

// zeroSum adds up what the optimizer's step of a rank works on.
type zeroSum struct {
	stage     costmodel.Strategy
	part      int64 // trained elements of the rank
	whole     int64 // and of all ranks
	grad      int64 // bytes of a gradient's element
	master    bool  // the gradients are copied to fp32
	transient int64 // of the optimizer itself
}

// zeroStates sets every unit's states to those of one rank.
func (e *estimator) zeroStates(t *costmodel.Table) zeroSum {
	z := zeroSum{stage: e.w.Strategy, grad: e.compute.WeightBytes(), master: e.w.Precision.Mixed()}
	for u := range t.Units {
		unit, g := &t.Units[u], &e.g.Units[u]
		unit.OptimizerState, unit.StepTransient, unit.Padding = 0, 0, 0 // flat buffers: no tensor is rounded by itself
		for _, i := range g.Exec {
			if !e.runs(i) {
				continue
			}
			for _, tensor := range e.updated(&e.g.Layers[i]) {
				part := e.part(tensor.numel)
				state, transient := e.zeroState(tensor, part)
				unit.OptimizerState += state
				z.transient += transient
				z.part += part
				z.whole += tensor.numel
			}
		}
		e.zeroGradients(unit, g.Exec)
	}
	return z
}

// zeroState is the optimizer state of a rank's part of one tensor: master
// weights and its states, on a flat partition, fp32 under mixed precision.
// Without it the master is a copy none the less (stage_1_and_2.py,
// single_partition_of_fp32_groups is a clone; stage3.py,
// _create_fp32_partitions shares the weights only where tensor.device ==
// self.device, which compares a torch.device with a string and is false). A
// moving average is of weights, which ZeRO 1 and 2 leave whole.
func (e *estimator) zeroState(t updatedTensor, part int64) (state, transient int64) {
	each := e.w.Precision.WeightBytes()
	var shape []int64
	if e.w.Optimizer == costmodel.Muon {
		shape = t.shape // its groups are told apart before they are flattened
	}
	state, transient = e.stateOf(shape, part, each)
	state += part * each
	if e.w.EMA && e.w.Strategy != costmodel.Zero3 {
		state += (t.numel - part) * e.averaged(each)
	}
	return state, transient
}

// zeroGradients sets what a unit's backward leaves. ZeRO 1 reduces when
// backward is done, so that all gradients are there by then. ZeRO 2 reduces as
// they come and keeps the rank's part, beside the sum of earlier
// micro-batches (stage_1_and_2.py, independent_gradient_partition_epilogue:
// all_grad_tensors). ZeRO 3 has a flat buffer for its part throughout
// (stage3.py, grad_partitions_flat_buffer).
func (e *estimator) zeroGradients(unit *costmodel.Unit, layers []int) {
	if e.w.Strategy == costmodel.Zero1 {
		return
	}
	unit.HeldGrads = 0
	step := 0
	for _, i := range layers {
		grads := &e.grads[i]
		part := e.part(grads.first - grads.waits) // a tied gradient waits whole for its last use
		s := &unit.Steps[step]
		step++
		if e.w.Strategy == costmodel.Zero3 {
			unit.HeldGrads += part
			part = 0
		} else if e.w.MicroBatches > 1 {
			unit.HeldGrads += part
		}
		s.Grads = part + grads.waits
	}
}

// step is what the optimizer's step takes beside the gradients that backward
// left (stage_1_and_2.py and stage3.py, step): the rank's gradients are
// flattened, and copied to fp32 under mixed precision; then the 16-bit ones
// go, and the optimizer runs. ZeRO 3 does so for sub_group_size elements at a
// time.
func (z *zeroSum) step() int64 {
	const subGroup = 1e9
	group, kept := z.part, z.part*z.grad
	if z.stage == costmodel.Zero3 {
		group = min(group, subGroup)
	}
	flat, fp32 := group*z.grad, int64(0)
	if z.master {
		fp32 = 4 * group
	}
	updating := max(flat, fp32) + z.transient*group/max(1, z.part)
	if z.stage != costmodel.Zero3 {
		updating -= kept // averaged_gradients go before the update
	}
	most := max(flat+fp32, updating)
	if z.stage == costmodel.Zero1 { // Walk still counts all ranks' gradients
		most += kept - z.whole*z.grad
	}
	return max(0, most)
}

// part is a rank's part of n elements or bytes, rounded up.
func (e *estimator) part(n int64) int64 {
	return (n + e.w.ShardDegree - 1) / max(1, e.w.ShardDegree)
}
