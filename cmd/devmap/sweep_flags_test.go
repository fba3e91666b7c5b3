package main

import (
	"fmt"
	"slices"
	"strconv"
)

// spread draws the strategy and its settings.
func (d *drawing) spread(mode string) {
	strategy := d.one(0.75, "strategy", "device-map", "pipeline", "pipeline", "pipeline", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp", "auto")
	switch strategy {
	case "ddp":
		d.one(0.4, "runtime", "torch", "lightning")
		d.one(0.2, "gradient-as-bucket-view", "")
	case "pipeline":
		if d.one(0.7, "schedule", "1f1b", "gpipe", "interleaved") == "interleaved" {
			d.one(0.4, "virtual-stages", "1", "2", "3", "4")
		}
	case "zero3", "fsdp", "hsdp":
		d.one(0.2, "shard-degree", "1", "2", "4", strconv.Itoa(d.gpus))
	}
	if mode == "train" {
		d.one(0.1, "ema", "")
		d.preset(strategy)
	}
}

// preset draws the training program and its settings.
func (d *drawing) preset(strategy string) {
	of := map[string][]string{
		"":    {"transformers", "trl-sft", "trl-dpo", "trl-grpo", "ms-swift", "ms-swift-megatron", "llamafactory", "axolotl", "lightning", "torchtune", "torchtitan", "accelerate-loop"},
		"ddp": {"transformers", "trl-sft", "trl-dpo", "trl-grpo", "ms-swift", "llamafactory", "axolotl", "lightning"},
		"fsdp": {
			"transformers", "transformers:fsdp1", "transformers:fsdp1-prefetch", "transformers:distributed-config", "trl-sft", "trl-dpo", "llamafactory",
			"axolotl", "lightning", "lightning:blocks", "lightning:model-parallel", "torchtune", "torchtitan", "torchtitan:eager",
		},
		"hsdp":  {"transformers", "transformers:fsdp1", "trl-sft", "lightning", "lightning:blocks", "torchtitan", "torchtitan:eager"},
		"zero3": {"transformers", "trl-sft", "axolotl"},
	}
	if names := of[strategy]; len(names) > 0 {
		d.one(0.4, "preset", names...)
	}
	d.one(0.05, "compile", "")
	d.one(0.1, "liger", "")
	d.one(0.05, "optimizer-in-backward", "")
	d.one(0.05, "eval-batch", "1", "4")
}

// sizes draws batch, parts and lengths.
func (d *drawing) sizes(mode string) {
	batches := []int{1, 2, 3, 4, 8, 16, 2 * d.gpus, 4 * d.gpus}
	batch := 1
	if d.chance(0.75) {
		batch = batches[d.IntN(len(batches))]
		d.add("batch", strconv.Itoa(batch))
	}
	if d.chance(0.5) {
		parts := []int{1, d.gpus, 2 * d.gpus, batch, batch, batch, max(1, batch/2)}
		if n := parts[d.IntN(len(parts))]; batch%n == 0 || d.chance(0.1) {
			d.add("micro-batches", strconv.Itoa(n))
		}
	}
	d.one(0.5, "seq", "64", "128", "300", "512", "1000")
	if slices.Contains([]string{"t5-11b", "whisper-large-v3"}, d.model.name) {
		d.one(0.5, "target-seq", "1", "64", "200")
	}
	if mode != "train" && mode != "load" {
		d.one(0.2, "new-tokens", "1", "100")
	}
	if slices.Contains([]string{"qwen2.5-vl-3b", "gemma-3-27b", "paligemma-3b"}, d.model.name) {
		d.one(0.6, "images", "0", "1", "2", "1.5,2")
		if d.model.name == "qwen2.5-vl-3b" {
			d.one(0.3, "image-size", "224", "448")
			d.one(0.2, "max-pixels", "50176", "1003520")
		}
	}
}

// numerics draws the precision, and for training the trained parameters and the optimizer.
func (d *drawing) numerics(mode string) {
	d.one(0.4, "precision", "bf16-true", "bf16-mixed", "16-mixed", "16-true", "32-true")
	d.one(0.2, "attention", "sdpa", "eager", "flash")
	if mode != "train" {
		return
	}
	d.one(0.1, "lengths", "200,1000", "64,64", "1.5,300")
	d.one(0.1, "packing", "none", "wrapped", "packed", "padding-free")
	d.one(0.1, "label-tokens", "0.3", "20", "1")
	d.one(0.5, "optimizer", "adamw", "adamw-foreach", "adamw-8bit", "sgd", "sgd-momentum", "adafactor", "muon", "paged-adamw-8bit")
	d.one(0.5, "recompute", "none", "full", "full", "selective")
	if d.one(0.2, "lora-rank", "1", "8", "64") != "" {
		d.add("lora-targets", []string{"all-linear", "q_proj,v_proj"}[d.IntN(2)])
		d.one(0.4, "quantize", "nf4", "int8")
		d.one(0.3, "lora-precision", "fp32", "bf16")
	}
	d.one(0.3, "loss", "eager", "chunked", "fused", "tiled")
	d.one(0.1, "loss-only", "")
}

// placement draws the objective, and limits on the place of units.
func (d *drawing) placement(mode string) {
	if mode != "load" {
		d.one(0.15, "objective", "time", "time", "front")
	}
	d.one(0.07, "contiguous", "false")
	if mode != "train" {
		d.one(0.12, "offload", "cpu", "disk")
	}
	unit := func() string { return d.model.graph.Units[d.IntN(len(d.model.graph.Units))].Name }
	if d.chance(0.07) {
		d.add("pin", fmt.Sprintf("%s=%d", unit(), d.IntN(d.gpus)))
	}
	if d.chance(0.04) {
		d.add("together", unit()+","+unit())
	}
}
