package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// resolvePrecision takes the model's own types where no precision was asked
// for. DeepSpeed's users write "bf16": {"enabled": true} for a bf16 model and
// "fp16": {"enabled": true} for an fp16 one, under which the whole module is
// cast to 16 bits (deepspeed/runtime/engine.py, _configure_distributed_model)
// and fp32 master weights and states are kept.
func resolvePrecision(g *modelgraph.Graph, w *costmodel.Workload) {
	if w.Precision == "" {
		w.Precision = costmodel.PrecisionOf(mainType(g))
		w.StoredTypes = true
		if w.Runtime == costmodel.DeepSpeed && w.Precision != costmodel.FP32True {
			w.Precision, w.StoredTypes = w.Precision.WithMaster(), false
		}
	}
	resolveAdapters(w)
}

// resolveAdapters takes the type in which an engine has adapters. PEFT makes
// them fp32 on any base (peft/tuners/tuners_utils.py, cast_adapter_dtype);
// FSDP2, whose groups have one type of trained parameters (torch/distributed/
// fsdp/_fully_shard/_fsdp_param_group.py, _init_mp_dtypes), is given them in
// the base's, and DeepSpeed casts the module.
func resolveAdapters(w *costmodel.Workload) {
	switch {
	case w.LoRARank == 0 || w.LoRAPrecision != "":
	case w.Runtime == costmodel.DeepSpeed:
		w.LoRAPrecision = adaptersAs(gathered(w.Precision))
	case w.Strategy.Traits().Sharded:
		w.LoRAPrecision = adaptersAs(w.Precision)
	default:
		w.LoRAPrecision = costmodel.AdaptersFP32
	}
}

// adaptersAs is the type of adapters that are stored as weights are.
func adaptersAs(p costmodel.Precision) costmodel.AdapterPrecision {
	if p.WeightBytes() < 4 {
		return costmodel.AdaptersBF16
	}
	return costmodel.AdaptersFP32
}
