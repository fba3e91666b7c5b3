package reserve

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/internal/replay"
)

// Plain is a device that runs a part of a model under autograd alone: a device map.
type Plain struct {
	// Stored is the size of a parameter's element. States is the number of its optimizer tensors,
	// State their bytes and the temporaries'.
	Stored, States      int64
	State               func(numel, each int64) (state, transient int64)
	MicroBatches, Steps int
	Buckets, Rebuilds   bool // DDP's; it makes them again in the second step
	// NewTokens is the number of tokens in inference: one forward each, instead of steps.
	NewTokens int64
}

// Part is a device's part of a decoder, by layers. With input it has the caller's tensors, and the
// outputs unless they are dropped.
func (out *Decoder) Part(contains func(layer int) bool, input, dropped bool) *Decoder {
	part := *out
	embeds, heads, ends := contains(out.Embedding.Index), contains(out.HeadIndex), contains(out.NormIndex)
	part.blocks(out, contains)
	part.KeepsLogits = heads && input && !dropped
	if input && !heads {
		part.Copied, part.Passes = out.Head.Vocab*out.Logits*out.Element, dropped
	}
	if !embeds {
		part.Embedding.Weight = nil
	}
	part.Copies = out.Rotary > 0 && !contains(out.rotary)
	part.Sent = !part.Copies && !embeds
	if !ends {
		part.Norm.Weight = nil
	}
	if !heads {
		part.Head.Linear = nil
	}
	part.own(contains)
	return &part
}

// own takes the weights of the device's layers.
func (out *Decoder) own(contains func(layer int) bool) {
	out.Params, out.Trained = nil, nil
	for i := range out.layers.Layers {
		if !contains(i) {
			continue
		}
		for _, weight := range out.Owned[i] {
			if weight.Trained {
				out.Trained = append(out.Trained, weight)
			}
			if !out.layers.Frozen || !weight.Trained { // adapters come later
				out.Params = append(out.Params, weight)
			}
		}
	}
}

// blocks selects the device's blocks, and marks where tensors cross devices.
func (out *Decoder) blocks(whole *Decoder, contains func(layer int) bool) {
	here := contains(whole.Embedding.Index) // whether the tensor at hand was made on the device
	leave := func(on bool) {
		if last := len(out.Blocks) - 1; here && !on && last >= 0 {
			out.Blocks[last].Leaves = true
		}
	}
	out.Blocks = nil
	for i, block := range whole.Blocks {
		on := contains(block.Halves[0].NormIndex)
		leave(on)
		if i == 0 {
			out.Embedding.Leaves = !on
		}
		if block.Arrives = !here; on {
			out.Blocks = append(out.Blocks, block)
		}
		here = on
	}
	ends := contains(whole.NormIndex)
	leave(ends)
	out.EndArrives = !here && (ends || contains(whole.HeadIndex))
}

// plain is such a device at work.
type plain struct {
	*Plain
	*Process
	trained int64 // size of a trained element
	buckets []*replay.Tensor
}

func (*plain) Enter(int, string, bool) {}
func (*plain) Leave(int, string, bool) {}
func (*plain) Block(int, bool, bool)   {}
func (*plain) Backward()               {}
func (*plain) Gradient(*replay.Weight) {}

// Simulate runs the first steps of a device.
func (device *Plain) Simulate(decoder *Decoder) [][2]int64 {
	return decoder.either(func(decoder *Decoder) []int64 {
		marks, _ := device.run(decoder)
		return marks
	})
}

// Rests are what blocks have above their tensors, at the peak of the last step and when it has ended.
func (device *Plain) Rests(decoder *Decoder) [2]int64 {
	early, prompt := *decoder, *device
	early.Early, early.up = true, true
	prompt.NewTokens = 0 // which come after the peak
	_, rests := prompt.run(&early)
	return rests
}

func (device *Plain) run(decoder *Decoder) (marks []int64, rests [2]int64) {
	process := newProcess(decoder, 1)
	work := &plain{Plain: device, Process: &process, trained: device.Stored}
	for _, weight := range decoder.Params {
		process.New(weight.Numel * device.Stored)
	}
	if decoder.layers.Frozen { // PEFT makes the adapters on the model's GPU, after the model
		work.adapt()
	}
	process.Cache.ResetPeaks()
	if !decoder.layers.Train {
		work.infer()
		return process.marks, process.rests
	}
	for step := range device.Steps {
		if device.Buckets {
			work.rebuild(step)
		}
		for range device.MicroBatches {
			process.pass(work)
		}
		work.step(step == 0)
		process.mark()
	}
	return process.marks, process.rests
}

// adapt makes the adapters in the model's type, and then casts them one after another
// (peft/tuners/tuners_utils.py, cast_adapter_dtype).
func (device *plain) adapt() {
	device.trained = device.Adapter
	cast := device.Adapter != device.Element && !device.Early
	var made []*replay.Tensor
	for _, weight := range device.Trained {
		each := device.trained
		if cast {
			each = device.Element
		}
		made = append(made, device.New(weight.Numel*each))
	}
	for i, weight := range device.Trained {
		if cast {
			device.New(weight.Numel * device.trained)
			device.Drop(made[i])
		}
	}
}

// infer runs a forward, and one for each new token but the last, which is not fed again. It follows
// some of many tokens, equally far apart: each makes all keys and values again, a little larger.
func (device *plain) infer() {
	const followed = 16
	device.Infer(device.Run, device, device.Length)
	device.mark()
	if device.NewTokens < 2 {
		return
	}
	next := *device.Decoder
	next.Tokens, next.Logits, next.Length = next.Batch, next.Batch, 1
	next.Rotary /= max(1, device.Length)
	for steps := min(followed, device.NewTokens-1); steps > 0; steps-- {
		device.Drop(device.Outputs...)
		device.Outputs = device.Outputs[:0]
		next.Infer(device.Run, device, (device.NewTokens-1)/min(followed, device.NewTokens-1))
	}
	device.mark()
}

// step makes the optimizer's states, once, and drops the gradients.
func (device *plain) step(first bool) {
	var temporary []*replay.Tensor
	for _, weight := range device.Trained {
		state, transient := device.State(weight.Numel, device.trained)
		for range device.States {
			if first {
				device.New(state / device.States)
			}
		}
		temporary = append(temporary, device.New(transient))
	}
	device.Drop(temporary...)
	for _, weight := range device.Trained {
		device.Drop(weight.Grad)
		weight.Grad = nil
	}
	device.Drop(device.Outputs...)
	device.Outputs = device.Outputs[:0]
}

// rebuild makes DDP's buckets before a step. If DDP rebuilds them, the first step has one bucket of
// all gradients. The second step frees it, and makes buckets in the order of the gradients.
// Sources: torch/nn/parallel/distributed.py, _ddp_init_helper;
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
