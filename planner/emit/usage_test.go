package emit_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

// TestUsage: the command asks the engine for what the plan counts, where the
// engine's own default is another.
func TestUsage(t *testing.T) {
	train := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DeviceMap, Batch: 8, MicroBatches: 2, Seq: 1024, Precision: costmodel.BF16True, StoredTypes: true, Optimizer: costmodel.AdamW}
	with := func(change func(*costmodel.Workload)) costmodel.Workload {
		w := train
		change(&w)
		return w
	}
	adapted := func(w *costmodel.Workload) {
		w.Preset, w.Precision, w.StoredTypes, w.LoRARank, w.LoRATargets = "ms-swift", costmodel.BF16Mixed, false, 8, []string{"all-linear"}
	}
	infer := costmodel.Workload{Mode: costmodel.Infer, Batch: 1, MicroBatches: 1, Seq: 1024, Precision: costmodel.BF16True, StoredTypes: true}
	flat := devicemap.Flat{{Key: "model.embed_tokens", Device: 0}, {Key: "lm_head", Device: 1}}
	for _, c := range []struct {
		name   string
		engine string
		w      costmodel.Workload
		want   string
	}{
		{"as stored", "accelerate", infer, `AutoModelForCausalLM.from_pretrained(MODEL, device_map=json.load(open("m.json")), dtype="auto")`},
		{"autocast", "accelerate", with(func(w *costmodel.Workload) { w.Precision, w.StoredTypes = costmodel.BF16Mixed, false }), `dtype=torch.float32)`},
		{"bf16", "accelerate", with(func(w *costmodel.Workload) { w.StoredTypes = false }), `dtype=torch.bfloat16)`},
		{"eager", "accelerate", with(func(w *costmodel.Workload) { w.Attention = "eager" }), `attn_implementation="eager")`},
		{"nf4", "accelerate", with(func(w *costmodel.Workload) { w.Quantize = "nf4" }), `BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True))`},
		{"int8", "accelerate", with(func(w *costmodel.Workload) { w.Quantize = "int8" }), `BitsAndBytesConfig(load_in_8bit=True))`},
		{
			"full training", "ms-swift", train,
			"swift sft --model MODEL --device_map m.json --tuner_type full --per_device_train_batch_size 4 --gradient_accumulation_steps 2 --max_length 1024 --gradient_checkpointing false --dataset DATASET",
		},
		{"checkpoints", "ms-swift", with(func(w *costmodel.Workload) { w.Recompute = costmodel.RecomputeFull }), "--gradient_checkpointing true"},
		{"LoRA", "ms-swift", with(func(w *costmodel.Workload) { w.LoRARank, w.LoRATargets = 16, []string{"q_proj", "v_proj"} }), "--tuner_type lora --lora_rank 16 --target_modules q_proj v_proj "},
		{"fp32 and autocast", "ms-swift", with(func(w *costmodel.Workload) { w.Precision, w.StoredTypes = costmodel.BF16Mixed, false }), "--torch_dtype float32 --bf16 true"},
		{"the base's type", "ms-swift", with(adapted), " m.json --bf16 true --tuner_type lora --lora_rank 8"},
		{"the base's type", "accelerate", with(adapted), `dtype="auto")`},
		{"an fp32 base", "ms-swift", with(func(w *costmodel.Workload) { adapted(w); w.Preset = "trl-sft" }), "--torch_dtype float32 --bf16 true"},
		{"one micro-batch", "ms-swift", with(func(w *costmodel.Workload) { w.MicroBatches = 1 }), "--per_device_train_batch_size 8 --gradient_accumulation_steps 1 "},
		{"evaluation", "ms-swift", with(func(w *costmodel.Workload) { w.EvalBatch = 3 }), "--per_device_eval_batch_size 3 "},
		{"Liger", "ms-swift", with(func(w *costmodel.Workload) { w.Liger = true }), "--use_liger_kernel true "},
		{"fp32", "ms-swift", with(func(w *costmodel.Workload) { w.Precision, w.StoredTypes = costmodel.FP32True, false }), "--torch_dtype float32 --fp16 false --bf16 false"},
		{"8-bit", "ms-swift", with(func(w *costmodel.Workload) { w.Optimizer = "adamw-8bit" }), "--optim adamw_bnb_8bit"},
		{"inference", "ms-swift", infer, "swift infer --model MODEL --device_map m.json"},
	} {
		p := &devicemap.Plan{DeviceMap: flat, Workload: c.w}
		got, n := target(t, c.engine).Usage(&emit.Input{Plan: p}, "m.json")
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if (c.engine == "ms-swift") != strings.Contains(n, "rank r adds r") {
			t.Errorf("%s: %s says %q", c.name, c.engine, n)
		}
	}
	one := &devicemap.Plan{DeviceMap: flat[:1], Workload: train}
	if _, n := target(t, "ms-swift").Usage(&emit.Input{Plan: one}, "m.json"); n != "" {
		t.Errorf("one GPU: %q", n)
	}
}

// TestStoredBases: the base's type is that which the cost model counts, under every
// training program.
func TestStoredBases(t *testing.T) {
	text, err := os.ReadFile("../../costmodel/internal/trainer/paths.json")
	if err != nil {
		t.Fatal(err)
	}
	var presets []struct {
		Name, Like string // a program before it, whose table it begins with
		Path       struct {
			Stored *bool `json:"frozen_as_stored"`
		}
	}
	if err := json.Unmarshal(text, &presets); err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, preset := range presets {
		stored[preset.Name] = stored[preset.Like]
		if own := preset.Path.Stored; own != nil {
			stored[preset.Name] = *own
		}
		w := costmodel.Workload{Mode: costmodel.Train, Preset: preset.Name, Precision: costmodel.BF16Mixed, LoRARank: 8}
		plan := &devicemap.Plan{DeviceMap: devicemap.Flat{{Key: "lm_head"}}, Workload: w}
		if call, _ := target(t, "accelerate").Usage(&emit.Input{Plan: plan}, "m.json"); strings.Contains(call, `dtype="auto"`) != stored[preset.Name] {
			t.Errorf("%s: %s", preset.Name, call)
		}
	}
}
