package costmodel

import (
	"fmt"
	"slices"
	"strings"
)

// The values of each named part of a workload, the default first.

// Modes are those of [Workload.Mode].
func Modes() []Mode { return []Mode{Infer, Train, Load} }

// Runtimes are the engines that are built.
func Runtimes() []Runtime { return []Runtime{Accelerate, DeepSpeed, Torch, Lightning} }

// Schedules are those of a pipeline.
func Schedules() []ScheduleKind { return []ScheduleKind{OneFOneB, GPipe, Interleaved} }

// Precisions are those that can be asked for.
func Precisions() []Precision {
	return []Precision{BF16True, BF16Mixed, FP16Mixed, FP16True, FP32True}
}

// Optimizers are those of [Workload.Optimizer].
func Optimizers() []Optimizer {
	return []Optimizer{AdamW, AdamWForeach, AdamW8bit, SGD, SGDMomentum, Adafactor, Muon}
}

// Recomputes are those of [Workload.Recompute].
func Recomputes() []Recompute {
	return []Recompute{RecomputeNone, RecomputeFull, RecomputeSelective}
}

// Quantizes are those of [Workload.Quantize] but none.
func Quantizes() []Quantize { return []Quantize{NF4, Int8} }

// AdapterPrecisions are those of [Workload.LoRAPrecision].
func AdapterPrecisions() []AdapterPrecision { return []AdapterPrecision{AdaptersFP32, AdaptersBF16} }

// Losses are those of [Workload.Loss].
func Losses() []Loss { return []Loss{LossEager, LossChunked, LossFused} }

// AttentionKernels are those of [Workload.Attention].
func AttentionKernels() []AttentionKernel {
	return []AttentionKernel{SDPA, EagerAttention, FlashAttention}
}

// Fault is the first field of a resolved workload, as a plan file has it, that
// is no value of its kind: its name there and what is wrong. Whether the
// fields go together is not looked at. Empty where all are values.
func (w *Workload) Fault() (field, msg string) {
	for _, check := range []func() (string, string){
		func() (string, string) { return named("mode", w.Mode, Modes(), false) },
		func() (string, string) { return named("strategy", w.Strategy, Strategies(), false) },
		func() (string, string) { return named("runtime", w.Runtime, Runtimes(), false) },
		func() (string, string) { return named("precision", w.Precision, Precisions(), false) },
		func() (string, string) { return named("optimizer", w.Optimizer, Optimizers(), w.Mode != Train) },
		func() (string, string) { return named("recompute", w.Recompute, Recomputes(), w.Mode != Train) },
		func() (string, string) { return named("schedule", w.Schedule, Schedules(), true) },
		func() (string, string) { return named("quantize", w.Quantize, Quantizes(), true) },
		func() (string, string) { return named("loss", w.Loss, Losses(), true) },
		func() (string, string) { return named("attention", w.Attention, AttentionKernels(), true) },
		func() (string, string) { return named("lora_precision", w.LoRAPrecision, AdapterPrecisions(), true) },
		w.badNumber,
	} {
		if field, msg = check(); field != "" {
			return field, msg
		}
	}
	return "", ""
}

// named checks one of the named values; open allows the empty one.
func named[T ~string](field string, value T, known []T, open bool) (string, string) {
	if slices.Contains(known, value) || open && value == "" {
		return "", ""
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return field, fmt.Sprintf("%q is unknown (known: %s)", value, strings.Join(names, ", "))
}

// badNumber is the first number that counts nothing.
func (w *Workload) badNumber() (field, msg string) {
	const most = 1 << 32
	for _, v := range []struct {
		field    string
		n, least int64
	}{
		{"batch", w.Batch, 1},
		{"micro_batches", w.MicroBatches, 1},
		{"seq", w.Seq, 0},
		{"target_seq", w.TargetSeq, 0},
		{"new_tokens", w.NewTokens, 0},
		{"images", w.Images, 0},
		{"image_size", w.ImageSize, 0},
		{"world", w.World, 0},
		{"virtual_stages", w.VirtualStages, 0},
		{"shard_degree", w.ShardDegree, 0},
		{"lora_rank", w.LoRARank, 0},
	} {
		if v.n < v.least || v.n > most {
			return v.field, fmt.Sprintf("%d is not between %d and 2^32", v.n, v.least)
		}
	}
	if w.Batch%w.MicroBatches != 0 {
		return "micro_batches", fmt.Sprintf("%d does not divide the batch of %d", w.MicroBatches, w.Batch)
	}
	return "", ""
}
