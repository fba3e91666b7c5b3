package zero

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
)

// Settings are a configuration file's settings with an effect on memory: zero_optimization, in
// elements (zero/config.py), and settings around it.
type Settings struct {
	Stage           int64 `json:"stage"`
	ReduceBucket    int64 `json:"reduce_bucket_size"`
	AllgatherBucket int64 `json:"allgather_bucket_size"`
	Limits
	Persistence int64 `json:"stage3_param_persistence_threshold"`
	SubGroup    int64 `json:"sub_group_size"`
	Contiguous  bool  `json:"contiguous_gradients"`
	Overlap     bool  `json:"overlap_comm"`
	// OffloadOptimizer and OffloadParams keep these in host memory, pinned unless Pageable.
	OffloadOptimizer  bool `json:"offload_optimizer,omitzero"`
	OffloadParams     bool `json:"offload_param,omitzero"`
	PageableOptimizer bool `json:"offload_optimizer_pageable,omitzero"`
	PageableParams    bool `json:"offload_param_pageable,omitzero"`
	// FP32Gradients: gradients are summed in fp32 (data_types.grad_accum_dtype). FP32Reduction:
	// they are reduced so, too: a 16-bit module without a bf16 or fp16 section.
	FP32Gradients bool    `json:"fp32_gradients,omitzero"`
	FP32Reduction bool    `json:"fp32_reduction,omitzero"`
	Clipping      float64 `json:"gradient_clipping,omitzero"`
	// GatherOnSave: stage3_gather_16bit_weights_on_model_save.
	GatherOnSave bool `json:"stage3_gather_16bit_weights_on_model_save,omitzero"`

	// Asked are the file's values of the workload's fields, until both were compared.
	Asked Asked `json:"-"`
}

// Asked is the part of a configuration file that flags can say as well. Zero
// says nothing of a number, [Auto] leaves it to the trainer.
type Asked struct {
	MicroBatch   int64  // train_micro_batch_size_per_gpu
	Accumulation int64  // gradient_accumulation_steps
	TrainBatch   int64  // train_batch_size
	Section      string // SectionNone, SectionBF16, …
	// BF16 and FP16 are their sections' "enabled"; empty without one, Absent without the section.
	BF16, FP16 string
	Optimizer  string // optimizer.type, in lower case
}

// The sections of a configuration that say how numbers are kept.
const (
	SectionNone = "none" // neither bf16 nor fp16 is enabled
	SectionBF16 = "bf16"
	SectionTrue = "bf16-true" // with master weights, gradients and states in bf16
	SectionFP16 = "fp16"
)

// Absent is a section that the file does not have.
const Absent = "absent"

// Auto is a size that the trainer fills in: Transformers, of the model
// (transformers/integrations/deepspeed.py, trainer_config_finalize).
const Auto = -1

// Defaults are DeepSpeed's own.
func Defaults(stage int64) Settings {
	return Settings{
		Stage:        stage,
		ReduceBucket: 5e8, AllgatherBucket: 5e8, Limits: Limits{Prefetch: 5e7, Live: 1e9, Reuse: 1e9},
		Persistence: 1e5, SubGroup: 1e9, Contiguous: true, Overlap: stage == 3,
	}
}

// Fill gives the sizes that are left to the trainer their values for a model of this width.
func (set *Settings) Fill(hidden int64) {
	fill := func(size *int64, value int64) {
		if *size == Auto {
			*size = value
		}
	}
	fill(&set.ReduceBucket, hidden*hidden)
	fill(&set.Prefetch, hidden*hidden*9/10)
	fill(&set.Persistence, 10*hidden)
}

// Fault is the first value that a resolved configuration cannot have.
func (set *Settings) Fault() error {
	for _, size := range []struct {
		name  string
		value int64
		least int64
	}{
		{"reduce_bucket_size", set.ReduceBucket, 1},
		{"allgather_bucket_size", set.AllgatherBucket, 0},
		{"stage3_prefetch_bucket_size", set.Prefetch, 0},
		{"stage3_max_live_parameters", set.Live, 0},
		{"stage3_max_reuse_distance", set.Reuse, 0},
		{"stage3_param_persistence_threshold", set.Persistence, 0},
		{"sub_group_size", set.SubGroup, 1},
	} {
		const most = 1 << 50
		if size.value < size.least || size.value > most {
			return fmt.Errorf("%s is %d: between %d and 2^50 elements work", size.name, size.value, size.least)
		}
	}
	if set.Stage < 1 || set.Stage > 3 {
		return fmt.Errorf("stage is %d: 1, 2 and 3 work", set.Stage)
	}
	return nil
}

// Persistent is a rank's bytes of permanently gathered parameters, in addition to its shards.
func Persistent(trace *Trace, ranks int64) int64 {
	var total int64
	for i := range trace.Params {
		if each := &trace.Params[i]; each.Persistent && ranks > 1 {
			bytes := (each.Numel + ranks - 1) / ranks * ranks * each.Bytes
			total += bytes + allocator.Rounding(bytes)
		}
	}
	return total
}
