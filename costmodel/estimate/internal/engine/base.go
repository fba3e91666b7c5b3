package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// base is what most engines do: they compute in the type of the weights, and
// keep gradients if there are several micro-batches.
type base struct{}

func (base) Precision(stored costmodel.Precision) (costmodel.Precision, bool) { return stored, true }

// Adapters are fp32 on any base (peft/tuners/tuners_utils.py, cast_adapter_dtype).
func (base) Adapters(workload *costmodel.Workload) (string, error) {
	if quantized16(workload) {
		return value.AdaptersBF16, nil
	}
	return value.AdaptersFP32, nil
}

// quantized16 reports that the program makes adapters on a quantised base bf16.
func quantized16(workload *costmodel.Workload) bool {
	return workload.Quantize != "" && trainer.Of(workload.Preset).Path.Quantized16
}

func (base) Refuse(*costmodel.Workload) error { return nil }

func (base) Rules(workload *costmodel.Workload) layers.Rules {
	rules := layers.Rules{Compute: workload.Precision, GradsPersist: workload.MicroBatches > 1}
	path := &trainer.Of(workload.Preset).Path
	rules.FusedAdapters = path.FusedAdapters && workload.Quantize != value.Int8
	if workload.LoRARank > 0 && (workload.Quantize == "" || path.FusedAdapters || path.QuantizedAsLoaded) && ops.MixedPrecision(workload.Precision) && path.FrozenAsStored {
		// The base keeps the 16 bits that it is loaded in, and autocast has
		// nothing to cast but the adapters, which PEFT makes fp32.
		rules.Compute, rules.FrozenAsStored, rules.AutocastAdapters = gathered(workload.Precision), true, true
	}
	rules.AutocastAdapters = rules.AutocastAdapters || autocast(workload)
	return rules
}

// autocast reports adapters on a 16-bit base in a program with bf16 on.
func autocast(workload *costmodel.Workload) bool {
	return trainer.Of(workload.Preset).Path.Autocast && workload.LoRARank > 0 && workload.Quantize == "" && ops.WeightBytes(workload.Precision) == 2
}

func (base) Regions(*layers.Model, *costmodel.Table) error { return nil }

func (base) Finish(*layers.Model, *costmodel.Table) {}

// gathered is the precision of gathered weights, and of compute: 16 bits for fp32 shards (FSDP2:
// MixedPrecisionPolicy's param_dtype).
func gathered(precision costmodel.Precision) costmodel.Precision {
	switch precision {
	case costmodel.BF16Mixed:
		return costmodel.BF16True
	case costmodel.FP16Mixed:
		return costmodel.FP16True
	default:
		return precision
	}
}

// adaptersAs is the type of adapters that are stored as weights are.
func adaptersAs(precision costmodel.Precision) string {
	if ops.WeightBytes(precision) < 4 {
		return value.AdaptersBF16
	}
	return value.AdaptersFP32
}

// checkDegree refuses degrees of sharding that are not a number of GPUs.
func checkDegree(workload *costmodel.Workload) error {
	if workload.ShardDegree < 1 {
		return costmodel.Refuse(costmodel.Set("shard_degree", workload.ShardDegree),
			"%d is no number of GPUs; the divisors of %d work", workload.ShardDegree, workload.World)
	}
	return nil
}

// warn adds a warning to a table.
func warn(table *costmodel.Table, format string, args ...any) {
	table.Warnings = append(table.Warnings, costmodel.Messagef(format, args...))
}
