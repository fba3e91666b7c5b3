package emit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// TestOutside: each setting that changes memory, and that neither the file nor the
// command has, is a note; a setting that the command has is none.
func TestOutside(t *testing.T) {
	flat := devicemap.Flat{{Key: "model.embed_tokens", Device: 0}}
	for _, c := range []struct {
		engine string
		change func(*costmodel.Workload)
		want   []string // a part of each note, in order
	}{
		{"accelerate", func(w *costmodel.Workload) { w.Loss = "chunked" }, []string{"loss=chunked, which accelerate does not set: compute the cross-entropy over a part", "AdamW(fused=True)"}},
		{"accelerate", func(w *costmodel.Workload) { w.Mode, w.Loss, w.EMA = costmodel.Infer, "chunked", true }, nil},
		{"accelerate", func(w *costmodel.Workload) { w.LossOnly, w.Optimizer = true, "adamw-8bit" }, []string{"loss_only=true", "AdamW8bit"}},
		{"accelerate", func(w *costmodel.Workload) { w.Recompute, w.MicroBatches, w.Precision = "full", 2, costmodel.BF16Mixed }, []string{"gradient_checkpointing_enable", "AdamW", "micro_batches=2", "torch.autocast"}},
		{"ms-swift", func(w *costmodel.Workload) { w.Recompute, w.Optimizer = "full", "adafactor" }, nil},
		{"ms-swift", func(w *costmodel.Workload) { w.Recompute, w.Optimizer, w.EMA = "selective", "muon", true }, []string{"ema=true", "recompute=selective", "optimizer=muon"}},
		{"accelerate", func(w *costmodel.Workload) { w.OptimizerInBackward = true }, []string{"optimizer=adamw", "register_post_accumulate_grad_hook"}},
		{"accelerate", func(w *costmodel.Workload) { w.Liger, w.Optimizer = true, "paged-adamw-8bit" }, []string{"PagedAdamW8bit", "liger=true, which accelerate does not set: set use_liger_kernel"}},
		{"ms-swift", func(w *costmodel.Workload) { w.Compile = true }, []string{"compile=true, which ms-swift does not set: set torch_compile"}},
		{"ms-swift", func(w *costmodel.Workload) { w.Loss = "fused" }, []string{"--use_liger_kernel true"}},
		{"deepspeed", func(w *costmodel.Workload) {
			w.LoRARank, w.LoRATargets, w.LoRAPrecision, w.Quantize = 8, []string{"q_proj"}, "bf16", "nf4"
		}, []string{"AdamW", `LoraConfig(r=8, target_modules=["q_proj"])`, "autocast_adapter_dtype=False", "load_in_4bit"}},
		{"deepspeed", func(w *costmodel.Workload) {
			w.Strategy, w.LoRARank, w.LoRATargets, w.LoRAPrecision = costmodel.Zero2, 8, []string{"q_proj"}, "bf16" // as DeepSpeed casts them
		}, []string{"AdamW", "LoraConfig"}},
		{"accelerate-config", func(w *costmodel.Workload) { w.LoRARank, w.LoRATargets = 8, []string{"all-linear"} }, []string{`LoraConfig(r=8, target_modules="all-linear")`, "dtype", "AdamW"}},
		{"deepspeed", func(w *costmodel.Workload) { w.Attention = "flash" }, []string{"AdamW", "flash_attention_2"}},
		{"openpi", func(w *costmodel.Workload) { w.Recompute = "full" }, []string{"jax.checkpoint"}},
		{"openpi", func(w *costmodel.Workload) { w.EMA = true }, nil},
		{"torch-schedule", func(w *costmodel.Workload) { w.Recompute = "auto" }, []string{"each stage", "AdamW"}},
		{"torch-schedule", func(w *costmodel.Workload) { w.Recompute = "0-5,9" }, []string{"recompute=0-5,9, which torch-schedule does not set: wrap these blocks, and no others", "AdamW"}},
		{"torch-schedule", func(w *costmodel.Workload) { w.OffloadActivations = "0-5,9" }, []string{"offload_activations=0-5,9, which torch-schedule does not set: run these blocks, and no others, under", "AdamW"}},
		{"transformers", func(w *costmodel.Workload) { w.Recompute = "0-5,9" }, []string{"the program recomputes all blocks or none: plan with --recompute full or none", "dtype"}},
		{"torchtune", func(w *costmodel.Workload) { w.Recompute = "0-5,9" }, []string{"all blocks or none"}},
		{"accelerate-config", func(w *costmodel.Workload) { w.Recompute = "0-5,9" }, []string{"all blocks or none", "dtype", "AdamW"}},
		{"program", func(w *costmodel.Workload) { w.Loss = "chunked" }, nil},
	} {
		workload := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DeviceMap, Batch: 4, MicroBatches: 1, Seq: 64, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, Recompute: "none"}
		c.change(&workload)
		notes := target(t, c.engine).Outside(&devicemap.Plan{DeviceMap: flat, Workload: workload})
		for i := range max(len(notes), len(c.want)) {
			if i >= len(notes) || i >= len(c.want) || !strings.Contains(notes[i].String(), c.want[i]) {
				t.Errorf("%s: notes %q, want %q", c.engine, notes, c.want)
				break
			}
		}
	}
}

// TestFileOf: a plan for DeepSpeed makes DeepSpeed's file, under ms-swift too.
func TestFileOf(t *testing.T) {
	for plan, want := range map[string]string{"zero3": "ds_config.json", "device-map": "device_map.json"} {
		if got := target(t, "ms-swift").FileOf(golden(t, plan)); got != want {
			t.Errorf("%s: %s, want %s", plan, got, want)
		}
	}
	input := golden(t, "pipeline")
	input.JSON = true
	if got := target(t, "program").FileOf(input); got != "program.json" {
		t.Errorf("%s", got)
	}
}

// TestOutsideHostile: names of modules in a note are quoted.
func TestOutsideHostile(t *testing.T) {
	for _, name := range hostile {
		workload := costmodel.Workload{Mode: costmodel.Train, LoRARank: 1, LoRATargets: []string{name}, Recompute: name, Optimizer: name, Quantize: name, Loss: name}
		for _, target := range emit.Targets() {
			for _, note := range target.Outside(&devicemap.Plan{Workload: workload}) {
				if strings.ContainsFunc(note.String(), quote.Steers) {
					t.Errorf("%s, %q: %q steers a terminal", target.Name, name, note)
				}
			}
		}
	}
}

// TestRefuse: the plan of a diffusion pipeline is refused by its own words, with a
// target that takes it, and a refusal differs from a broken plan.
func TestRefuse(t *testing.T) {
	for _, engine := range []string{"accelerate", "deepspeed", "ms-swift", "openpi", "program", "torch-check", "torch-schedule"} {
		err := target(t, engine).Refuse(golden(t, "diffusion").Plan, "")
		if refused := interface{ Refused() }(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "is of a diffusion pipeline, whose components run one after another: emit --for ") {
			t.Errorf("%s: %v", engine, err)
		}
	}
	plan, openpi := golden(t, "jax").Plan, target(t, "openpi")
	for family, want := range map[string]string{"": "", "openpi_pi05": "", "gpt2": `the plan for "pi0" is of a model of type gpt2, which openpi does not run`} {
		if err := openpi.Refuse(plan, family); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", family, err)
		}
	}
}
