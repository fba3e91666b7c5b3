package main

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// meant are values as other programs or people call ours. Where a name has
// been given to two things, both stand.
var meant = map[string]map[string]string{
	"mode": {
		"training": "train", "finetune": "train", "fine-tune": "train", "sft": "train", "pretrain": "train",
		"inference": "infer", "generate": "infer", "eval": "infer", "forward": "infer", "weights": "load", "loading": "load",
	},
	"precision": {
		"bf16": "bf16-true or bf16-mixed", "bfloat16": "bf16-true or bf16-mixed", "fp16": "16-true or 16-mixed", "float16": "16-true or 16-mixed", "half": "16-true or 16-mixed", "16": "16-true or 16-mixed",
		"mixed": "bf16-mixed or 16-mixed", "amp": "bf16-mixed or 16-mixed", "fp16-mixed": "16-mixed", "fp16-true": "16-true",
		"fp32": "32-true", "float32": "32-true", "32": "32-true", "full": "32-true", "float": "32-true",
	},
	"optimizer": {
		"adam": "adamw", "adamw_torch": "adamw-foreach", "adamw_torch_fused": "adamw", "adamw-fused": "adamw", "adam8bit": "adamw-8bit", "adamw8bit": "adamw-8bit", "adamw_8bit": "adamw-8bit", "adamw_bnb_8bit": "adamw-8bit", "momentum": "sgd-momentum",
	},
	"recompute": {"true": "full", "on": "full", "all": "full", "block": "full", "false": "none", "off": "none", "checkpointing": "full"},
	"strategy": {
		"auto-map": "device-map", "device_map": "device-map", "naive": "device-map", "pp": "pipeline", "dp": "ddp", "data-parallel": "ddp", "zero": "zero1, zero2 or zero3", "zero-1": "zero1", "zero-2": "zero2", "zero-3": "zero3", "deepspeed": "zero1, zero2 or zero3",
		"fsdp1": "fsdp", "fsdp2": "fsdp", "full-shard": "fsdp", "full_shard": "fsdp", "hybrid": "hsdp", "hybrid-shard": "hsdp",
	},
	"runtime":   {"transformers": "accelerate", "hf": "accelerate", "huggingface": "accelerate", "pytorch": "torch", "pytorch-lightning": "lightning", "pl": "lightning", "ds": "deepspeed"},
	"schedule":  {"1f1b-interleaved": "interleaved", "interleaved1f1b": "interleaved", "interleaved-1f1b": "interleaved", "interleaved_1f1b": "interleaved", "schedule1f1b": "1f1b", "schedulegpipe": "gpipe"},
	"loss":      {"liger": "fused", "cross-entropy": "eager"},
	"quantize":  {"4bit": "nf4", "4-bit": "nf4", "int4": "nf4", "fp4": "nf4", "bnb": "nf4 or int8", "8bit": "int8", "8-bit": "int8", "none": "off"},
	"objective": {"speed": "time", "latency": "time", "throughput": "time", "balance": "memory", "pareto": "front"},
	"offload":   {"off": "none", "ram": "cpu", "host": "cpu", "nvme": "disk", "ssd": "disk"},
	"attention": {"flash-attention": "flash", "flash_attention_2": "flash", "flash_attention_3": "flash", "fa2": "flash", "math": "eager"},
	"for":       {"swift": "ms-swift", "ms_swift": "ms-swift", "transformers": "accelerate", "huggingface": "accelerate", "hf": "accelerate"},
}

// guess is what was meant by a value that is unknown: another's name for one
// of ours, one in other letters, or one that a slip of the fingers makes;
// empty where nothing is near. built are the values that are taken.
func guess(flag, value string, built []string) string {
	low := strings.ToLower(strings.TrimSpace(value))
	if names := meant[flag][low]; names != "" && everyIn(names, built) {
		return names
	}
	if slices.Contains(built, low) {
		return low
	}
	const slips = 2
	best, at := "", slips+1
	for _, b := range built {
		if d := levenshtein.ComputeDistance(low, b); d < at && d < len(b)/2+1 {
			best, at = b, d
		}
	}
	return best
}

// everyIn reports that all names of "a, b or c" are taken.
func everyIn(names string, built []string) bool {
	for _, n := range strings.FieldsFunc(strings.ReplaceAll(names, " or ", ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		if !slices.Contains(built, n) {
			return false
		}
	}
	return true
}
