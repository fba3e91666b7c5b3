package zero

import (
	"fmt"
	"strings"
)

// zero reads zero_optimization.
func (read *reader) zero(part object, set *Settings) {
	const place = "zero_optimization"
	if set.Stage < 1 || set.Stage > 3 {
		read.fail(place+".stage", "%d: 1, 2 and 3 cut something (0 trains whole replicas, as DDP does)", set.Stage)
	}
	for _, size := range []struct {
		key  string
		to   *int64
		auto bool
	}{
		{"reduce_bucket_size", &set.ReduceBucket, true},
		{"allgather_bucket_size", &set.AllgatherBucket, false},
		{"stage3_prefetch_bucket_size", &set.Prefetch, true},
		{"stage3_param_persistence_threshold", &set.Persistence, true},
		{"stage3_max_live_parameters", &set.Live, false},
		{"stage3_max_reuse_distance", &set.Reuse, false},
		{"sub_group_size", &set.SubGroup, false},
	} {
		*size.to = read.whole(part, place, size.key, *size.to, size.auto)
	}
	set.Contiguous = read.flag(part, place, "contiguous_gradients", set.Contiguous)
	set.Overlap = read.flag(part, place, "overlap_comm", set.Overlap)
	set.GatherOnSave = read.flag(part, place, "stage3_gather_16bit_weights_on_model_save", false)
	set.OffloadOptimizer, set.PageableOptimizer = read.offload(part, "offload_optimizer")
	set.OffloadParams, set.PageableParams = read.offload(part, "offload_param")
	if set.OffloadParams && set.Stage != 3 {
		read.fail(place+".offload_param", "stage %d keeps parameters whole on every GPU; stage 3 offloads them", set.Stage)
	}
	for _, key := range []string{"zero_quantized_weights", "zero_quantized_nontrainable_weights", "zero_quantized_gradients", "stage3_use_all_reduce_for_fetch_params"} {
		if read.flag(part, place, key, false) {
			read.fail(at(place, key), "it changes what GPUs hold in a way that is not modelled")
		}
	}
	if ranks := read.whole(part, place, "zero_hpz_partition_size", 1, false); ranks > 1 {
		read.fail(place+".zero_hpz_partition_size", "%d: a second copy of the parameters within a host is not modelled (1 is)", ranks)
	}
}

// offload reads one of the two sections, and whether its memory is pageable.
func (read *reader) offload(part object, key string) (is, pageable bool) {
	place := "zero_optimization." + key
	section := read.section(part, "zero_optimization", key)
	if section == nil {
		return false, false
	}
	read.known(place, section, offloadKeys)
	switch device := section["device"]; device {
	case nil, "none":
		return false, false
	case "cpu":
		if ratio, ok := section["ratio"].(float64); ok && ratio != 1 {
			read.fail(place+".ratio", "%g: a part of the states on the GPU is not modelled (1 is)", ratio)
		}
		return true, !read.flag(section, place, "pin_memory", true)
	default:
		read.fail(place+".device", "%s is not modelled (cpu and none are)", show(device))
		return false, false
	}
}

// precision reads bf16, fp16 and data_types.
func (read *reader) precision(root object, set *Settings) {
	bf16, fp16 := read.section(root, "", "bf16"), read.section(root, "", "fp16")
	isBF16, isFP16 := read.flag(bf16, "bf16", "enabled", false), read.flag(fp16, "fp16", "enabled", false)
	set.Asked.BF16, set.Asked.FP16 = enabled(bf16), enabled(fp16)
	left := bf16["enabled"] == "auto" || fp16["enabled"] == "auto"
	master, states := read.flag(bf16, "bf16", "bf16_master_weights_and_grads", false), read.flag(bf16, "bf16", "bf16_optimizer_states", false)
	switch {
	case isBF16 && isFP16:
		read.fail("fp16.enabled", "true, and bf16.enabled is true: DeepSpeed takes one of them")
	case isBF16 && master != states:
		read.fail("bf16", "bf16_master_weights_and_grads is %t and bf16_optimizer_states is %t: without offload DeepSpeed takes both or none", master, states)
	case isBF16 && master:
		set.Asked.Section = SectionTrue
	case isBF16:
		set.Asked.Section = SectionBF16
	case isFP16:
		set.Asked.Section = SectionFP16
	case !left:
		set.Asked.Section = SectionNone
	}
	switch kind := read.section(root, "", "data_types")["grad_accum_dtype"]; kind {
	case nil, "auto":
	case "fp32", "float32":
		set.FP32Gradients = set.Asked.Section != SectionNone
	case "bf16", "bfloat16", "fp16", "float16":
	default:
		read.fail("data_types.grad_accum_dtype", "%s is not fp32, bf16 or fp16", show(kind))
	}
}

// enabled is the value of a section's "enabled".
func enabled(section object) string {
	switch value := section["enabled"]; {
	case section == nil:
		return Absent
	case value == nil:
		return ""
	default:
		return fmt.Sprint(value)
	}
}

// asked reads what flags say as well.
func (read *reader) asked(root object, set *Settings) {
	set.Asked.MicroBatch = read.whole(root, "", "train_micro_batch_size_per_gpu", 0, true)
	set.Asked.Accumulation = read.whole(root, "", "gradient_accumulation_steps", 0, true)
	set.Asked.TrainBatch = read.whole(root, "", "train_batch_size", 0, true)
	switch clip := root["gradient_clipping"].(type) {
	case nil:
	case float64:
		set.Clipping = clip
	default:
		if clip != "auto" {
			read.fail("gradient_clipping", "%s is no number", show(clip))
		}
		set.Clipping = 1 // TrainingArguments.max_grad_norm
	}
	if optimizer := read.section(root, "", "optimizer"); optimizer != nil {
		name, ok := optimizer["type"].(string)
		if !ok {
			read.fail("optimizer.type", "%s is no name", show(optimizer["type"]))
		}
		set.Asked.Optimizer = strings.ToLower(name)
	}
}
