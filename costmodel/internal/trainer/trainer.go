// Package trainer has the defaults of training programs, as data: what each
// sets, and how it drives the engine that holds the tensors.
package trainer

import (
	_ "embed"
	"encoding/json"
	"sync"
)

//go:embed presets.json
var table []byte

// Loop is a loop written by hand, with the engines' own defaults.
const Loop = "accelerate-loop"

// Preset is the defaults of one training program.
type Preset struct {
	Name string `json:"name"`
	// Program names the packages and versions that Sets and Path were read in.
	Program string `json:"program"`
	// Strategies can be run by the program, the default first.
	Strategies []string `json:"strategies"`
	Sets       []Set    `json:"sets"`
	Path       Path     `json:"path"`
	// Missing is memory of the program that devmap does not count yet, MissingLoRA
	// that of its adapters; Nearest is the preset to plan with instead.
	Missing     string `json:"missing"`
	MissingLoRA string `json:"missing_lora"`
	Nearest     string `json:"nearest"`
	// Notes say what the values assume.
	Notes []string `json:"notes"`
}

// Set is a default: a field of the workload, its value, and where the program
// has it (file:name).
type Set struct {
	Field  string `json:"field"`
	Value  string `json:"value"`
	Source string `json:"source"`
	// Under are the strategies that have it; none: all.
	Under []string `json:"under"`
	// When is lora or full where it holds with or without adapters alone.
	When string `json:"when"`
	// Python is an expression of the program's packages with the value, for
	// make presets.
	Python string `json:"python"`
}

// Path is how a program drives its engine. The zero value is a loop written by
// hand.
type Path struct {
	// Ends: FSDP2 has a group for the embedding, and one for the head that stays
	// gathered (accelerate 1.15, utils/fsdp_utils.py, fsdp2_prepare_model).
	Ends bool `json:"ends"`
	// ReduceAsComputed: FSDP2's mixed precision reduces in the type of compute
	// (accelerate, utils/dataclasses.py, set_mixed_precision), not in fp32.
	ReduceAsComputed bool `json:"reduce_as_computed"`
	// FrozenAsStored: mixed precision makes trained parameters fp32 alone
	// (fsdp2_prepare_model).
	FrozenAsStored bool `json:"frozen_as_stored"`
	// HoldsGradients: micro-batches before the last reduce nothing, and whole
	// gradients are held (accelerator.py, no_sync: set_requires_gradient_sync).
	HoldsGradients bool `json:"holds_gradients"`
	// AdaptersFP32: adapters are fp32 on any base (peft, cast_adapter_dtype).
	AdaptersFP32 bool `json:"adapters_fp32"`
	// StateDict: a state dict keeps every whole parameter while FSDP2 cuts the
	// model (fsdp2_prepare_model, original_sd).
	StateDict bool `json:"state_dict"`
	// PlainAlone: on one GPU DDP wraps nothing (accelerate, state.py: no process
	// group, so that prepare_model leaves the model as it is).
	PlainAlone bool `json:"plain_alone"`
	// RootReshards: the root's parameters are freed after forward, too.
	RootReshards bool `json:"root_reshards"`
}

var presets = sync.OnceValue(func() []Preset {
	var out []Preset
	if err := json.Unmarshal(table, &out); err != nil {
		panic(err) // the table is part of the program
	}
	return out
})

// Presets are all, in the order in which they are listed.
func Presets() []Preset { return presets() }

// Names are those of all presets.
func Names() []string {
	var out []string
	for i := range presets() {
		out = append(out, presets()[i].Name)
	}
	return out
}

// Of is the preset of a name; that of [Loop] for an empty one.
func Of(name string) *Preset {
	for i := range presets() {
		if presets()[i].Name == name {
			return &presets()[i]
		}
	}
	return &presets()[0]
}
