package layers

import (
	"cmp"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// storages are numbers of storages of a size ([learned.Storages]).
type storages = []storage

type storage = struct {
	Count int64
	Size  [6]int64
	Rule  string
	Of    [][6]int64
}

// moments are what exists at once ([learned.Moments]).
type moments = []struct {
	Bytes storages
	Past  map[string]storages
}

// askedStep is a step that a tape is wanted for. It is [learned.Asked], which only modelgraph can import.
type askedStep = struct {
	Step       string
	Kind       string
	Rank       int64
	Eager      bool
	Batch, Seq int64
	Alone      bool
}

// asked is a step that a table of types may have: of a loop by hand, with eager loss of all tokens.
func asked(model *Model) (step askedStep, plain bool) {
	workload := &model.Workload
	step = askedStep{Step: "infer", Batch: MicroBatch(workload), Seq: workload.Seq, Eager: workload.Attention == value.EagerAttention, Alone: workload.OneGPU}
	if model.Train {
		step.Step = map[bool]string{false: "train", true: "recompute"}[model.Recomputes] + map[bool]string{true: " drops"}[workload.LossOnly]
	}
	switch {
	case workload.Mode == costmodel.Load || workload.NewTokens > 0 || workload.Images > 0 || workload.Kernels == value.PackageKernels,
		model.Train && !eagerLoss(workload), workload.TargetSeq > 0 && workload.TargetSeq != workload.Seq,
		!slices.Contains([]string{"", value.SDPA, value.EagerAttention}, workload.Attention):
		return step, false
	case workload.LoRARank > 0:
		step.Kind, step.Rank = "lora", workload.LoRARank
		return step, step.Alone && workload.Precision == costmodel.BF16True && allLinear(workload)
	case workload.Precision == costmodel.BF16Mixed && (!step.Alone || workload.Preset != trainer.Loop):
		return step, false // Accelerate's models return fp32 results, and FSDP casts parameters
	}
	step.Kind, plain = map[costmodel.Precision]string{costmodel.BF16True: "", costmodel.FP32True: "fp32", costmodel.BF16Mixed: "autocast"}[workload.Precision]
	return step, plain
}

// allLinear reports adapters in fp32 on all linear layers, as peft makes them.
func allLinear(workload *costmodel.Workload) bool {
	return slices.Equal(workload.LoRATargets, []string{"all-linear"}) && workload.LoRAPrecision == "fp32" && !workload.LoRADropout
}

// learns reports that the table has the step.
func learns(model *Model) bool {
	step, plain := asked(model)
	return plain && slices.ContainsFunc(model.Layers, func(layer Layer) bool { return layer.Learned.Step(step) != nil })
}

// eagerLoss reports a loss of all tokens by PyTorch's own kernels.
func eagerLoss(workload *costmodel.Workload) bool {
	return !workload.Liger && (workload.Loss == "" || workload.Loss == value.LossEager) && workload.LabelTokens == 0 && workload.Rows == nil
}

// bytesAt is the size of storages. Without rests, each has a block as an empty allocator cuts it.
func bytesAt(of storages, factors [6]int64, rests bool) (sum int64) {
	for i := range of {
		size := sizeOf(&of[i], factors)
		if !rests {
			size += allocator.Rounding(size)
		}
		sum += of[i].Count * size
	}
	return sum
}

// sizeOf is the size of one of these storages.
func sizeOf(one *storage, factors [6]int64) int64 {
	at := func(size [6]int64) (sum int64) {
		for term, factor := range size {
			sum += factor * factors[term]
		}
		return sum
	}
	if one.Rule == "" {
		return at(one.Size)
	}
	sizes := make([]int64, len(one.Of))
	for i, of := range one.Of {
		sizes[i] = at(of)
	}
	return ops.InKernel(one.Rule, sizes)
}

// atMost bounds the bytes of storages. A rule is at most 64 KiB for each element of its sizes.
func atMost(of storages, factors [6]int64) (sum float64) {
	for _, one := range of {
		for term, bytes := range one.Size {
			sum += float64(max(0, one.Count)) * float64(bytes) * float64(factors[term])
		}
		most := float64(max(0, one.Count)) * (64 << 10)
		for _, size := range one.Of {
			var all float64
			for term, bytes := range size {
				all += float64(bytes) * float64(factors[term])
			}
			most *= all
		}
		if one.Rule != "" {
			sum += most
		}
	}
	return sum
}

// learnedTape is that step at the workload's sizes.
func learnedTape(model *Model) *tape {
	factors := factors(model)
	wanted, _ := asked(model)
	_, rests := model.Followed() // which count the blocks' rests apart
	bytes := func(of storages) int64 { return bytesAt(of, factors, rests) }
	units := unitsByLayer(model)
	byUnit := func(of map[string]storages) []ofUnit { return sumByUnit(units, of, bytes) }
	at := func(of moments) (all []tapedMoment) {
		for _, moment := range of {
			all = append(all, tapedMoment{bytes(moment.Bytes), byUnit(moment.Past)})
		}
		return all
	}
	out := &tape{layers: make([]*tapedLayer, len(model.Layers)), train: model.Train, learned: true}
	shared := make(map[any]tapedLayer) // by part
	for i := range model.Layers {
		step := model.Layers[i].Learned.Step(wanted)
		if step == nil {
			continue
		}
		one, known := shared[step.Part]
		if !known {
			one = tapedLayer{
				saved: bytes(step.Saved), lasting: bytes(step.Lasting), products: step.Products, copied: byUnit(step.Copied),
				forward: at(step.Forward), backward: at(step.Backward), accumulate: at(step.Accumulate),
			}
			shared[step.Part] = one
		}
		layer := &one
		layer.rank = int64(step.Rank)
		if returned := bytes(step.Returned); model.Workload.Strategy == costmodel.DeviceMap {
			out.returned += returned
		} else {
			layer.saved, layer.returned = layer.saved+returned, returned
		}
		out.layers[i], out.ranked = layer, append(out.ranked, i)
	}
	slices.SortStableFunc(out.ranked, func(i, j int) int { return cmp.Compare(out.layers[i].rank, out.layers[j].rank) })
	return out
}

// shift is what moments of a layer's forward and backward have less than the walk needs, and less
// of gradients.
type shift struct{ forward, backward, grads int64 }

// shifts are those of layers. A recorded step's moments have all that exists. A table's are without
// what layers before keep and later gradients, where layers count in the order in which they run.
func (tape *tape) shifts(model *Model, units []costmodel.Unit, own []bool) []shift {
	shifts := make([]shift, len(tape.layers))
	saved, grads := make([]int64, len(shifts)), make([]int64, len(shifts))
	var order []int
	for u := range units {
		for k, i := range model.Unit(u) {
			layer := tape.layers[i]
			order = append(order, i)
			if !tape.learned || layer != nil && own[u] {
				grads[i] = units[u].Layers[k].Grads
			}
			if layer != nil && (!tape.learned || own[u]) {
				saved[i] = layer.saved
			}
		}
	}
	add := func(sign int64) {
		var before, later int64
		for _, i := range order {
			shifts[i].forward += sign * before
			before += saved[i]
		}
		for _, i := range slices.Backward(order) {
			shifts[i].grads += sign * later
			later += grads[i]
		}
	}
	add(-1)
	if !tape.learned {
		for i := range shifts {
			shifts[i].backward = shifts[i].forward - saved[i] - tape.returned
		}
		return shifts
	}
	order = tape.ranked
	for _, i := range order {
		grads[i] -= model.Layers[i].Grads.Waits
	}
	add(1)
	var returned int64
	for _, i := range slices.Backward(order) {
		shifts[i].backward = shifts[i].forward + returned
		returned += tape.layers[i].returned + tape.layers[i].lasting
	}
	return shifts
}
