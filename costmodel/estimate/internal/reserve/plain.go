package reserve

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/internal/replay"
)

// Plain is a device that runs a part of a model under autograd alone: a device
// map.
type Plain struct {
	// Stored is the size of a parameter's element, States the tensors that the
	// optimizer has of each.
	Stored, States      int64
	MicroBatches, Steps int
	Buckets, Rebuilds   bool // DDP's; it makes them again in the second step
}

// Part is the part of a decoder that a device holds, by layers. With input the
// caller's tensors are there, outputs among them unless they are dropped.
func (out *Decoder) Part(contains func(layer int) bool, input, dropped bool) *Decoder {
	part := *out
	part.Blocks, part.Params, part.Trained = nil, nil, nil
	for i := range out.Blocks {
		if block := out.Blocks[i]; contains(block.Halves[0].NormIndex) {
			part.Blocks = append(part.Blocks, block)
		}
	}
	embeds, heads := contains(out.Embedding.Index), contains(out.HeadIndex)
	logits := out.Head.Vocab * out.Tokens * out.Element
	part.KeepsLogits = heads && input && !dropped
	if input && !heads && !dropped {
		part.Copied = logits
	}
	if !embeds {
		part.Embedding.Weight, part.Copies = nil, true
	}
	if !contains(out.NormIndex) {
		part.Norm.Weight = nil
	}
	if !heads {
		part.Head.Linear = nil
	}
	for i := range out.layers.Layers {
		if contains(i) {
			part.Params = append(part.Params, out.Owned[i]...)
		}
	}
	for _, weight := range part.Params {
		if weight.Trained {
			part.Trained = append(part.Trained, weight)
		}
	}
	return &part
}

// plain is such a device at work.
type plain struct {
	*Plain
	*Process
	trained int64 // size of an element of what is trained
	buckets []*replay.Tensor
}

func (*plain) Enter(int, string, bool) {}
func (*plain) Leave(int, string, bool) {}
func (*plain) Block(int, bool, bool)   {}
func (*plain) Backward()               {}
func (*plain) Gradient(*replay.Weight) {}

// Simulate runs the first steps of a device.
func (device *Plain) Simulate(decoder *Decoder) [][2]int64 {
	marks, _ := device.run(decoder)
	return marks
}

// Rests are what blocks have above their tensors, at the peak of the last step and
// when it has ended.
func (device *Plain) Rests(decoder *Decoder) [2]int64 {
	_, rests := device.run(decoder)
	return rests
}

func (device *Plain) run(decoder *Decoder) (marks [][2]int64, rests [2]int64) {
	process := newProcess(decoder, 1)
	work := &plain{Plain: device, Process: &process, trained: device.Stored}
	for _, weight := range decoder.Params {
		process.New(weight.Numel * device.Stored)
	}
	if decoder.layers.Frozen { // PEFT makes the adapters on the model's GPU, after the model
		work.trained = decoder.Adapter
		for _, weight := range decoder.Trained {
			process.New(weight.Numel * work.trained)
		}
	}
	process.Cache.ResetPeaks()
	if decoder.Infer {
		process.Forward(process.Run, work)
		return nil, [2]int64{process.Cache.PeakRests, process.Cache.Rests}
	}
	for step := range device.Steps {
		if device.Buckets {
			work.rebuild(step)
		}
		for range device.MicroBatches {
			process.pass(work)
		}
		work.step(step == 0)
		rests = [2]int64{process.Cache.PeakRests, process.Cache.Rests}
		process.mark()
	}
	return process.marks, rests
}

// step makes the optimizer's states, once, and drops the gradients.
func (device *plain) step(first bool) {
	for _, weight := range device.Trained {
		for range device.States {
			if first {
				device.New(weight.Numel * device.trained)
			}
		}
	}
	for _, weight := range device.Trained {
		device.Drop(weight.Grad)
		weight.Grad = nil
	}
	device.Drop(device.Outputs...)
	device.Outputs = device.Outputs[:0]
}

// rebuild makes DDP's buckets before a step. If DDP rebuilds them, the first step has one
// bucket of all gradients. The second step frees it, and makes buckets in the order of
// the gradients. Sources: torch/nn/parallel/distributed.py, _ddp_init_helper;
// torch/csrc/distributed/c10d/reducer.cpp, rebuild_buckets, initialize_buckets.
func (device *plain) rebuild(step int) {
	const first, others = 1 << 20, 25 << 20 // kDefaultFirstBucketBytes, bucket_cap_mb
	if step > 1 || step == 1 && !device.Rebuilds {
		return
	}
	device.Drop(device.buckets...)
	device.buckets = nil
	limit, sum := int64(first), int64(0)
	if step == 0 && device.Rebuilds {
		limit = math.MaxInt64
	}
	order := slices.Clone(device.Trained)
	if step == 1 {
		slices.Reverse(order)
	}
	for _, weight := range order {
		if sum += weight.Numel * device.Stored; sum >= limit {
			device.buckets = append(device.buckets, device.New(sum))
			limit, sum = others, 0
		}
	}
	if sum > 0 {
		device.buckets = append(device.buckets, device.New(sum))
	}
}
