package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// titan is torchtitan 0.3 with tensor, context or pipeline parallelism: its modules on
// torch's stages, with FSDP2 over replicas and parts of sequences (parallel_dims.py).
type titan struct{ pipeline }

// Precision is fp32 with bf16 products (config/configs.py, TrainingConfig).
func (titan) Precision(stored costmodel.Precision) (costmodel.Precision, bool) {
	return deepspeed{}.Precision(stored)
}

// Refuse names what is not counted.
func (titan) Refuse(workload *costmodel.Workload) error {
	return refuseFirst(workload, []refusal{
		{workload.Mode != costmodel.Train, "mode", string(workload.Mode), string(costmodel.Train)},
		{workload.EP.Count() > 1, "ep", workload.EP.String(), "1"},
		{workload.LoRARank > 0, "lora_rank", costmodel.Set("", workload.LoRARank).Value, "0"},
		{workload.Quantize != "", "quantize", workload.Quantize, "off"},
	})
}

// Rules: without replicas autocast runs in the place of FSDP2's policy
// (distributed/utils.py, maybe_enable_amp).
func (titan) Rules(workload *costmodel.Workload) layers.Rules {
	rules := layers.Rules{Compute: workload.Precision, Untied: true, Modules: ops.Torchtitan, Cut: workload.DP.Count()*workload.CP.Count() > 1}
	if rules.Cut {
		rules.Compute = gathered(workload.Precision)
	}
	return rules
}

func (of titan) Finish(model *layers.Model, table *costmodel.Table) {
	of.pipeline.Finish(model, table)
	if model.Workload.TP.Count() > 1 || model.Workload.CP.Count() > 1 {
		warn(table, "torchtitan's tensor and context parallelism were read, not measured: peaks are rough where activations are large")
	}
}
