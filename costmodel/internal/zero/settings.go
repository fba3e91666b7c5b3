package zero

import "github.com/devmap-dev/devmap/costmodel/internal/allocator"

// Settings are what a configuration file decides of memory: its
// zero_optimization, in elements (zero/config.py), and what stands beside it.
type Settings struct {
	ReduceBucket    int64 `json:"reduce_bucket_size"`
	AllgatherBucket int64 `json:"allgather_bucket_size"`
	Limits
	Persistence int64 `json:"stage3_param_persistence_threshold"`
	SubGroup    int64 `json:"sub_group_size"`
	Contiguous  bool  `json:"contiguous_gradients"`
	Overlap     bool  `json:"overlap_comm"`
	// OffloadOptimizer and OffloadParams keep these in host memory; Pinned it
	// is page-locked.
	OffloadOptimizer bool `json:"offload_optimizer,omitzero"`
	OffloadParams    bool `json:"offload_param,omitzero"`
	PinnedOptimizer  bool `json:"offload_optimizer_pin_memory,omitzero"`
	PinnedParams     bool `json:"offload_param_pin_memory,omitzero"`
	// FP32Gradients: gradients are summed in fp32 (data_types.grad_accum_dtype,
	// or a 16-bit module without a bf16 or fp16 section).
	FP32Gradients bool    `json:"fp32_gradients,omitzero"`
	Clipping      float64 `json:"gradient_clipping,omitzero"`
}

// Defaults are DeepSpeed's own.
func Defaults(stage int) Settings {
	return Settings{
		ReduceBucket: 5e8, AllgatherBucket: 5e8, Limits: Limits{Prefetch: 5e7, Live: 1e9, Reuse: 1e9},
		Persistence: 1e5, SubGroup: 1e9, Contiguous: true, Overlap: stage == 3,
	}
}

// Persistent is what a rank holds of parameters that stay gathered, beside its
// part of them.
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
