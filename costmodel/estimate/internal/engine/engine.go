// Package engine is what each engine does with tensors that the ops do not say:
// one type in one file an engine, with one interface.
package engine

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// Engine is a runtime under one of its strategies. Most embed [base] and override parts.
type Engine interface {
	// Precision is the default precision of weights; asStored: each tensor keeps its own type.
	Precision(stored costmodel.Precision) (weights costmodel.Precision, asStored bool)
	// Adapters is the engine's type of adapters; an error if the workload asks for an unsupported one.
	Adapters(workload *costmodel.Workload) (string, error)
	// Refuse returns a [*costmodel.FieldError] for fields that engine or devmap do not support.
	Refuse(workload *costmodel.Workload) error
	// Rules are the engine's rules for every layer's tensors.
	Rules(workload *costmodel.Workload) layers.Rules
	// Regions sets the units' regions and times if the engine plans every byte
	// ([costmodel.StageRules]). It returns an error if the engine does not run the model. It is
	// called in every mode, last.
	Regions(model *layers.Model, table *costmodel.Table) error
	// Finish sets a GPU's memory outside its units, and warns of omissions. Not in load mode.
	Finish(model *layers.Model, table *costmodel.Table)
}

// key is a strategy under a runtime.
type key struct {
	strategy costmodel.Strategy
	runtime  string
}

// engines is the table of all that are built.
var engines = map[key]Engine{
	{costmodel.DeviceMap, value.Accelerate}: accelerate{},
	{costmodel.DeviceMap, costmodel.Devmap}: devmap{},
	{costmodel.Pipeline, value.Torch}:       pipeline{},
	{costmodel.Pipeline, costmodel.Devmap}:  devmap{},
	{costmodel.Pipeline, value.Megatron}:    megatron{},
	{costmodel.Pipeline, value.Torchtitan}:  titan{},
	{costmodel.DDP, value.Torch}:            ddp{},
	{costmodel.DDP, value.Lightning}:        lightning{},
	{costmodel.FSDP, value.Torch}:           fsdp{},
	{costmodel.FSDP, value.JAX}:             jax{},
	{costmodel.HSDP, value.Torch}:           fsdp{},
	{costmodel.Zero1, value.DeepSpeed}:      deepspeed{},
	{costmodel.Zero2, value.DeepSpeed}:      deepspeed{},
	{costmodel.Zero3, value.DeepSpeed}:      deepspeed{},
}

// Of returns the engine of a workload. If there is none, the error names the field, and the engine
// has the common defaults ([base]).
func Of(workload *costmodel.Workload) (Engine, error) {
	if workload.Strategy == costmodel.DDP && trainer.Of(workload.Preset).Path.Megatron {
		return megatron{}, nil
	}
	if found, ok := engines[key{workload.Strategy, workload.Runtime}]; ok {
		if _, blocks := found.(fsdp); blocks && trainer.Of(workload.Preset).Path.Flat {
			return flat{}, nil
		}
		return found, nil
	}
	runtimes := workload.Strategy.Traits().Runtimes
	if workload.Runtime == value.Lightning && workload.Strategy.Traits().ByBlock { // its strategies differ more than a runtime says
		return base{}, costmodel.Refuse(costmodel.Set("runtime", workload.Runtime),
			"Lightning's FSDP is torch's: leave the runtime out and use %v (FSDPStrategy), lightning:blocks (with auto_wrap_policy) or lightning:model-parallel", costmodel.Set("preset", value.Lightning))
	}
	if workload.Runtime == value.Lightning && workload.Strategy.Traits().Replicated { // it has FSDP and DeepSpeed too
		return base{}, costmodel.Refuse(costmodel.Set("runtime", workload.Runtime),
			"devmap models Lightning with %v alone, not with %v", costmodel.Set("strategy", costmodel.DDP), costmodel.Set("strategy", workload.Strategy))
	}
	if len(runtimes) == 0 {
		return base{}, costmodel.Refuse(costmodel.Set("strategy", workload.Strategy),
			"%q is unknown (known: %s)", workload.Strategy, names(costmodel.Strategies()))
	}
	return base{}, costmodel.Refuse(costmodel.Set("runtime", workload.Runtime),
		"%s does not run %v; choose %s", workload.Runtime, costmodel.Set("strategy", workload.Strategy), strings.Join(runtimes, " or "))
}

func names[T ~string](values []T) string {
	var out []string
	for _, value := range values {
		out = append(out, string(value))
	}
	return strings.Join(out, ", ")
}
