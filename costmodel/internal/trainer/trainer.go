// Package trainer says how training programs drive the engines that hold the tensors, as data.
package trainer

import (
	"cmp"
	_ "embed"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

//go:embed paths.json
var table []byte

const (
	// Loop is a loop written by hand, with the engines' own defaults.
	Loop = "accelerate-loop"
	// Auto asks for the preset that follows from the strategy and the engine.
	Auto = "auto"
	// Usual is the program that is assumed under Accelerate.
	Usual = "transformers"
)

// Preset is one training program.
type Preset struct {
	Name string
	// Like is an earlier preset. Path has its fields, unless the row sets them.
	Like string
	// Strategies can be run by the program, the default first; none: any.
	Strategies []string
	Runtime    string // empty: the strategy's
	Path       Path
	Packs      Packs // how it fills rows
	// Optimizers are the program's optimizers, the nearest first; none: any (torchtitan,
	// components/optimizer/optimizer.py, OptimizersContainer).
	Optimizers []string
	// Missing is memory of the program that devmap does not count yet, MissingLoRA its adapters'
	// except under LoRAUnder; Nearest is the preset to plan with instead.
	Missing     string
	MissingLoRA string   `json:"missing_lora"`
	LoRAUnder   []string `json:"lora_under"`
	Nearest     string
	// Pipeline is the class of trained diffusion pipelines; empty: models of Transformers.
	Pipeline string
}

// Path is how a program drives its engine. The zero value is a loop written by hand.
type Path struct {
	// Ends: FSDP2 has a group for the embedding, and one for the head that stays
	// gathered (accelerate 1.15, utils/fsdp_utils.py, fsdp2_prepare_model).
	Ends bool
	// ReduceAsComputed: FSDP2's mixed precision reduces in the type of compute
	// (accelerate, utils/dataclasses.py, set_mixed_precision), not in fp32.
	ReduceAsComputed bool `json:"reduce_as_computed"`
	// ReduceFP32: gradients are reduced in fp32, whatever the parts have
	// (transformers/distributed/fsdp.py, _get_fsdp_policy_kwargs).
	ReduceFP32 bool `json:"reduce_fp32"`
	// FrozenAsStored: mixed precision makes trained parameters fp32 alone (fsdp2_prepare_model).
	FrozenAsStored bool `json:"frozen_as_stored"`
	// RetainsGradients: micro-batches before the last reduce nothing, and whole
	// gradients are held (accelerator.py, no_sync: set_requires_gradient_sync).
	RetainsGradients bool `json:"retains_gradients"`
	// AdaptersFP32: adapters are fp32 on any base (peft, cast_adapter_dtype).
	AdaptersFP32 bool `json:"adapters_fp32"`
	// FusedAdapters: the program's autograd functions run LoRA (axolotl, kernels/lora.py).
	FusedAdapters bool `json:"fused_adapters"`
	// QuantizedAsLoaded: the program does not call PEFT's prepare_model_for_kbit_training, so
	// tensors that are not quantised keep their type. Sources are trl, trainer/sft_trainer.py;
	// swift, pipelines/train/tuner.py; llamafactory, model/adapter.py.
	QuantizedAsLoaded bool `json:"quantized_as_loaded"`
	// Quantized16: adapters on a quantised base are bf16 (trl, SFTTrainer.__init__).
	Quantized16 bool `json:"quantized_16"`
	// Megatron: Megatron-Core's layers, data parallelism and distributed optimizer.
	Megatron bool
	// StateDict: a state dict keeps every whole parameter while FSDP2 shards (fsdp2_prepare_model).
	StateDict bool `json:"state_dict"`
	// PlainAlone: DDP wraps nothing on one GPU (accelerate, state.py, prepare_model).
	PlainAlone bool `json:"plain_alone"`
	// Embeddings32: bitsandbytes' 8-bit optimizers have fp32 states for embeddings
	// (transformers, trainer.py, create_optimizer: register_module_override).
	Embeddings32 bool `json:"embeddings_32"`
	// StepsAfter: the program has its optimizer step after backward alone.
	StepsAfter bool `json:"steps_after"`
	// Evaluates: [costmodel.Workload.EvalBatch] is counted (transformers, evaluation_loop).
	Evaluates bool
	// RootReshards: the root's parameters are freed after forward, too.
	RootReshards bool `json:"root_reshards"`
	// LabelPositions are the positions with logits. "suffix": from the first label on; in a
	// micro-batch of one row, labels alone (swift/trainers/mixin.py, prepare_logits_to_keep).
	// "all": all labels (trl/trainer/utils.py, add_fused_lm_head). Empty: every position.
	LabelPositions string `json:"label_positions"`
	// LigerLayers: with Liger its kernels run the layers alone, and the loss is the
	// program's own (trl/trainer/sft_trainer.py: fused_linear_cross_entropy False).
	LigerLayers bool `json:"liger_layers"`
	// Flat: FSDP1 (torch/distributed/fsdp/_flat_param.py), a flat parameter for
	// every block and one for the rest, or Whole: one for the model.
	Flat, Whole bool
	// Prefetches: backward gathers the next flat parameter early (BACKWARD_PRE).
	Prefetches bool
	// LastGradients: the last step's gradients remain through forward (lightning's
	// Closure.closure).
	LastGradients bool `json:"last_gradients"`
	// FrozenFP32: FSDP2 makes frozen parameters fp32, too (accelerate 1.11,
	// fsdp2_prepare_model: model.to(torch.float32)).
	FrozenFP32 bool `json:"frozen_fp32"`
	// AdaptersOneGroup: with adapters the model is one group, as Accelerate does not know PEFT's
	// wrap policy. Sources: transformers 5.6, integrations/fsdp.py, update_fsdp_plugin_peft;
	// accelerate 1.11, fsdp2_prepare_auto_wrap_policy.
	AdaptersOneGroup bool `json:"adapters_one_group"`
	// Autocast: bf16 is on by default, so that adapters on a 16-bit base run in 16
	// bits (trl, trainer/base_config.py, _BaseConfig.bf16).
	Autocast bool
	// HeadWhole: the loss reads the head's weight itself. If no hook has gathered
	// it, full_tensor does (trl, trainer/utils.py, add_fused_lm_head).
	HeadWhole bool `json:"head_whole"`
	// Pairs: a sample is two sequences, chosen and rejected, in one batch (trl,
	// trainer/dpo_trainer.py, DataCollatorForPreference).
	Pairs bool
	// Reference: full training has a frozen model in addition; adapters are
	// switched off instead (trl, DPOTrainer.__init__).
	Reference bool
	// Generates: the program generates its training data (trl, trainer/grpo_trainer.py).
	Generates bool
	// Float8: the program's recipes of torchao's linear layers, the nearest first (accelerate 1.15,
	// utils/dataclasses.py, AORecipeKwargs; axolotl 0.19, core/fp8.py, build_fp8_linear_config).
	// Float8Pads: its config pads operands (pad_inner_dim).
	Float8     string
	Float8Pads bool `json:"float8_pads"`
	// Modules are the program's own, if it does not run Transformers': torchtune, torchtitan.
	Modules string
	// OwnEnds: trained in full, untied ends are groups, which reshard (torchtune,
	// recipes/configs/llama3_1/8B_full.yaml, custom_sharded_layers).
	OwnEnds bool `json:"own_ends"`
	// OneThread: backward runs on forward's thread (torchtitan,
	// distributed/utils.py, set_multithreading_enabled).
	OneThread bool `json:"one_thread"`
	// ZeroesGradients: gradients are set to zero and stay (torchtitan,
	// trainer.py, train_step, under CUDA graphs).
	ZeroesGradients bool `json:"zeroes_gradients"`
}

// Presets are all, in the order in which they are listed.
var Presets = sync.OnceValue(func() []Preset {
	var rows []jsontext.Value
	if err := json.Unmarshal(table, &rows); err != nil {
		panic(err) // the table is part of the program
	}
	var out []Preset
	for _, row := range rows {
		out = append(out, read(row, out))
	}
	return out
})

// read reads a row of the table over the path of the preset that it is like.
func read(row []byte, before []Preset) (preset Preset) {
	var named struct{ Like string }
	err := json.Unmarshal(row, &named, json.MatchCaseInsensitiveNames(true))
	if named.Like != "" {
		at := slices.IndexFunc(before, func(one Preset) bool { return one.Name == named.Like })
		preset.Path = before[at].Path
	}
	if err = cmp.Or(err, json.Unmarshal(row, &preset, json.MatchCaseInsensitiveNames(true))); err != nil {
		panic(err)
	}
	return preset
}

// Names returns the names of all presets.
func Names() []string {
	var out []string
	for i := range Presets() {
		out = append(out, Presets()[i].Name)
	}
	return out
}

// Of returns the preset with a name, or [Loop]'s if unknown.
func Of(name string) *Preset {
	if found := byName()[name]; found != nil {
		return found
	}
	return &Presets()[0]
}

var byName = sync.OnceValue(func() map[string]*Preset {
	out := make(map[string]*Preset)
	for i := range Presets() {
		out[Presets()[i].Name] = &Presets()[i]
	}
	return out
})
