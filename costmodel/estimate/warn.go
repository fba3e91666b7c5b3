package estimate

import (
	_ "embed"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// warnings adds the warnings that belong to no unit, in printing order.
func warnings(table *costmodel.Table, model *layers.Model) {
	for _, situation := range []func(*costmodel.Table, *layers.Model) []costmodel.Message{unread, unmeasuredFlash, takenElsewhere, beyondLength, onGPU0, afterUnload, frozenBase, allLogits, untrained8, mixers, trainedApart, idleBlocks} {
		table.Warnings = append(table.Warnings, situation(table, model)...)
	}
}

// untrained8 says that Accelerate's own recipe trains nothing of linear layers without FSDP2.
func untrained8(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	if model.Workload.Float8 != value.TensorwiseGathered || model.Rules.Cut {
		return nil
	}
	return []costmodel.Message{costmodel.Messagef("%v without FSDP2: Accelerate 1.15 wraps the weights after the optimizer is made, so linear layers of blocks are not updated and have no states; set ACCELERATE_FP8_ENABLE_FSDP_FLOAT8_ALL_GATHER=false, which is %v",
		costmodel.Set("float8", model.Workload.Float8), costmodel.Set("float8", value.Tensorwise))}
}

// frozenBase says in which type a trainer leaves what adapters are put on: the
// same --precision means an fp32 base in a loop by hand.
func frozenBase(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	if !model.Frozen || !model.Rules.FrozenAsStored || !ops.MixedPrecision(model.Workload.Precision) {
		return nil
	}
	return []costmodel.Message{costmodel.Messagef("%v under %v: adapters are %s, and the frozen base keeps its stored type; a base loaded in fp32 is %v",
		costmodel.Set("precision", model.Workload.Precision), costmodel.Set("preset", model.Workload.Preset), model.Workload.LoRAPrecision, costmodel.Set("preset", trainer.Loop))}
}

// band is the error of a peak if the family's modelling code is not reviewed. Terms of one family
// are 2 to 50 % of a block's activations: Phi-3's copy of the hidden states, Gemma's norms in fp32,
// Mixtral's experts under autocast. In the measured rows they are under a tenth of a peak ("ten
// more families" of make accuracy, worst 3.1 %).
const band = 0.1

// readFamilies are the families with modelling code (transformers 5.17) reviewed tensor by tensor;
// they agree with measured rows to a fraction of a percent.
var readFamilies = map[string]bool{
	"llama": true, "mistral": true, "qwen2": true, "qwen3": true, "gemma": true, "gemma2": true, "phi3": true,
	"mixtral": true, "qwen3_moe": true, "gpt2": true, "qwen2_5_vl": true, "internvl": true,
}

// comparedBands are the bands of model types, by kind of step. A band is twice the largest difference of
// the type's cells of that kind (fixtures/oracle), and at least that of all its cells. Of held-out
// cells, 3 in 100 exceeded such bands. "other" is twice the largest of all. " split" follows a kind if
// steps that no tape of one GPU has need more. TestBands writes the file.
var comparedBands = sync.OnceValues(func() (bands map[string]map[string]float64, err error) {
	err = json.Unmarshal(bandsFile, &bands)
	return bands, err
})

//go:embed bands.json
var bandsFile []byte

// comparedBand is the band of a type's step: the widest of its kinds.
func comparedBand(family string, w *costmodel.Workload) (width float64, ok bool) {
	bands, err := comparedBands()
	if err != nil {
		panic(err)
	}
	split := !w.OneGPU || ops.MixedPrecision(w.Precision) && w.Preset != trainer.Loop
	for kind, has := range map[string]bool{
		"lora": w.LoRARank > 0, "autocast": ops.MixedPrecision(w.Precision), "fp32": w.Precision == costmodel.FP32True, "eager": w.Attention == value.EagerAttention,
		"train": w.Mode == costmodel.Train, "infer": w.Mode != costmodel.Train, "other": w.Quantize != "" || w.Optimizer != "" && w.Optimizer != costmodel.AdamW,
	} {
		if _, compared := bands[family][kind]; !compared {
			kind = "other"
		}
		if has {
			width = max(width, bands[family][kind])
		}
		if has && split {
			width = max(width, bands[family][kind+" split"])
		}
	}
	return width, width > 0
}

// planned reports an engine that plans its memory itself.
func planned(model *layers.Model) bool {
	return costmodel.StageRulesOf(model.Workload.Runtime).Arena || model.Workload.Runtime == value.JAX
}

// unread sets the band of a family that is not reviewed. A model file with its own operations has
// no family and no band; weights alone are exact.
func unread(table *costmodel.Table, model *layers.Model) []costmodel.Message {
	family := model.Graph.Family
	if family == "" || planned(model) || model.Workload.Mode == costmodel.Load {
		return nil
	}
	if known, unknown, _ := countKnown(model); known == 0 && unknown > 0 { // its peaks are lower bounds
		return nil
	}
	compared, ok := comparedBand(family, &model.Workload)
	switch {
	case readFamilies[family] && (compared <= 0.01 || !small(table)):
		return nil
	case ok:
		table.Band = compared
		return []costmodel.Message{costmodel.Messagef("model type %q: peaks are ±%.3g%%, by the differences from steps of Transformers that were followed without a GPU", family, 100*compared)}
	}
	table.Band = band
	return []costmodel.Message{costmodel.Messagef("model type %q is not reviewed; peaks are ±%.3g%%", family, 100*band)}
}

// small reports a model of less than 2 GiB, states counted. A block of more than 1 MiB keeps
// a rest of up to 1 MiB (CUDACachingAllocator.cpp, should_split), and not all are followed.
func small(table *costmodel.Table) bool {
	var there int64
	for i := range table.Units {
		there += table.Units[i].Params + table.Units[i].OptimizerState
	}
	return there < 2<<30
}

// unmeasuredFlash gives the figures their band: the package's own allocations were read, not measured.
func unmeasuredFlash(table *costmodel.Table, model *layers.Model) []costmodel.Message {
	if model.Workload.Attention != value.FlashAttention || model.Workload.Mode == costmodel.Load {
		return nil
	}
	table.Band = max(table.Band, band)
	padding := ""
	if model.Workload.Rows == nil {
		padding = "; padding is not counted"
	}
	return []costmodel.Message{costmodel.Messagef("the flash-attn package was read and not measured (PyTorch's copy of its kernels was): every peak may be %.0f%% lower or higher%s", 100*band, padding)}
}

// beyondLength warns about sequences longer than the model's positions, which rotary ones exceed.
func beyondLength(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	workload := &model.Workload
	length, what := workload.Seq, costmodel.Messagef("%v", costmodel.Setting{Field: "seq"})
	if hasTarget(model.Graph) {
		length, what = workload.TargetSeq, costmodel.Messagef("%v", costmodel.Setting{Field: "target_seq"})
	}
	if length += workload.NewTokens; workload.NewTokens > 0 {
		what = costmodel.Messagef("%v with %v", what, costmodel.Setting{Field: "new_tokens"})
	}
	if limit := model.Graph.MaxSeq; limit > 0 && length > limit && workload.Mode != costmodel.Load {
		return []costmodel.Message{costmodel.Messagef("%v asks for %d tokens a sequence, and the model was made for up to %d", what, length, limit)}
	}
	return nil
}

// strayContext is the GPU memory of one more process's context before its first kernel. Measured: 3
// held 1577 MiB on an H200 after del and empty_cache (torch 2.11, driver 580;
// fixtures/measured/seeds.json, gpu0_map_location_none).
const strayContext = (1577<<20 + 2) / 3

// checkpointOnGPU0 is the memory on GPU 0 if every rank loads a checkpoint saved from it with
// torch.load and no map_location. Tensors return to their storage's device (torch/serialization.py,
// default_restore_location). Each rank has a copy on cuda:0, and each but rank 0 a further context.
func checkpointOnGPU0(ranks, checkpoint int64) int64 {
	return ranks*checkpoint + (ranks-1)*strayContext
}

// onGPU0 applies if every rank loads the whole model.
func onGPU0(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	ranks := model.Workload.World
	if !model.Workload.Strategy.Traits().Replicated || ranks < 2 || planned(model) || model.Workload.Mode == costmodel.Load {
		return nil
	}
	size := model.Graph.ParamBytes()
	return []costmodel.Message{costmodel.Messagef("a checkpoint saved from cuda:0 that all %d ranks load without map_location puts %v on GPU 0 (%d copies of %v, %d more contexts): pass map_location=\"cpu\"",
		ranks, costmodel.Bytes(checkpointOnGPU0(ranks, size)), ranks, costmodel.Bytes(size), ranks-1)}
}

// leftAfterUnload is leaked memory: what remains on the first rank after `del model` if a reference
// to one wrapped module is left, as by `for block in model.layers: fully_shard(block)`. Every
// wrapped module holds its FSDPState, and all share a context that lists every state (torch 2.11,
// fsdp/_fully_shard/_fsdp_state.py, FSDPState._lazy_init and _init_shared_state). All shards and
// the gradients that are not None stay, through garbage collection and destroy_process_group.
func leftAfterUnload(model *layers.Model) (shards, grads int64) {
	degree := model.Workload.ShardDegree
	for i := range model.Layers {
		whole := &model.Layers[i].Whole
		for j, tensor := range whole.Owned() {
			size := whole.Stored(j)
			if len(tensor.Shape) > 0 && tensor.Shape[0] > 0 { // cut along the first dimension, rounded up
				size = size / tensor.Shape[0] * shard.Rows.Local(tensor.Shape, degree)[0]
			}
			shards += size
			if model.Train && tensor.DType.Float() && !model.Frozen {
				grads += size
			}
		}
	}
	return shards, grads
}

// afterUnload applies to FSDP: its modules refer to each other.
func afterUnload(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	if trainer.Of(model.Workload.Preset).Path.Flat || model.Workload.HostShards || !model.Workload.Strategy.Traits().ByBlock || planned(model) || model.Workload.Mode == costmodel.Load {
		return nil
	}
	shards, grads := leftAfterUnload(model)
	what := fmt.Sprintf("shards %v", costmodel.Bytes(shards))
	if grads > 0 {
		what += fmt.Sprintf(", gradients that are not None %v", costmodel.Bytes(grads))
	}
	return []costmodel.Message{costmodel.Messagef("after `del model` %v stay on every GPU (%s) while one wrapped block is still referenced, as the variable of the fully_shard loop is: del it too, then gc.collect()",
		costmodel.Bytes(shards+grads), what)}
}
