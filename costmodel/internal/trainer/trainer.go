// Package trainer says how training programs drive the engines that hold the
// tensors, as data.
package trainer

import (
	_ "embed"
	"encoding/json"
	"sync"
)

//go:embed paths.json
var table []byte

// Loop is a loop written by hand, with the engines' own defaults.
const Loop = "accelerate-loop"

// Preset is one training program.
type Preset struct {
	Name string
	// Strategies can be run by the program, the default first; none: any.
	Strategies []string
	Runtime    string // empty: that of the strategy
	Path       Path
	// Missing is memory of the program that devmap does not count yet, MissingLoRA
	// that of its adapters; Nearest is the preset to plan with instead.
	Missing     string
	MissingLoRA string `json:"missing_lora"`
	Nearest     string
}

// Path is how a program drives its engine. The zero value is a loop written by
// hand.
type Path struct {
	// Ends: FSDP2 has a group for the embedding, and one for the head that stays
	// gathered (accelerate 1.15, utils/fsdp_utils.py, fsdp2_prepare_model).
	Ends bool
	// ReduceAsComputed: FSDP2's mixed precision reduces in the type of compute
	// (accelerate, utils/dataclasses.py, set_mixed_precision), not in fp32.
	ReduceAsComputed bool `json:"reduce_as_computed"`
	// FrozenAsStored: mixed precision makes trained parameters fp32 alone
	// (fsdp2_prepare_model).
	FrozenAsStored bool `json:"frozen_as_stored"`
	// RetainsGradients: micro-batches before the last reduce nothing, and whole
	// gradients are held (accelerator.py, no_sync: set_requires_gradient_sync).
	RetainsGradients bool `json:"retains_gradients"`
	// AdaptersFP32: adapters are fp32 on any base (peft, cast_adapter_dtype).
	AdaptersFP32 bool `json:"adapters_fp32"`
	// StateDict: a state dict keeps every whole parameter while FSDP2 shards the
	// model (fsdp2_prepare_model, original_sd).
	StateDict bool `json:"state_dict"`
	// PlainAlone: on one GPU DDP wraps nothing (accelerate, state.py: no process
	// group, so that prepare_model leaves the model as it is).
	PlainAlone bool `json:"plain_alone"`
	// Embeddings32: bitsandbytes' 8-bit optimizers have fp32 states for embeddings
	// (transformers, trainer.py, create_optimizer: register_module_override).
	Embeddings32 bool `json:"embeddings_32"`
	// StepsAfter: the program has its optimizer step after backward alone.
	StepsAfter bool `json:"steps_after"`
	// Evaluates: [costmodel.Workload.EvalBatch] can be counted (transformers,
	// trainer.py, evaluation_loop).
	Evaluates bool
	// RootReshards: the root's parameters are freed after forward, too.
	RootReshards bool `json:"root_reshards"`
}

// Presets are all, in the order in which they are listed.
var Presets = sync.OnceValue(func() []Preset {
	var out []Preset
	if err := json.Unmarshal(table, &out); err != nil {
		panic(err) // the table is part of the program
	}
	return out
})

// Names are those of all presets.
func Names() []string {
	var out []string
	for i := range Presets() {
		out = append(out, Presets()[i].Name)
	}
	return out
}

// Of is the preset of a name; that of [Loop] for an unknown one.
func Of(name string) *Preset {
	for i := range Presets() {
		if Presets()[i].Name == name {
			return &Presets()[i]
		}
	}
	return &Presets()[0]
}
