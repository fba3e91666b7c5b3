package strategy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestRemedies: each class of remedy is offered if it is enough; its plan has the stated verdict.
func TestRemedies(t *testing.T) {
	for _, c := range []struct {
		name, model, gpu string
		gpus             int
		workload         costmodel.Workload
		want             []string
	}{
		{"QLoRA of 32B", "qwen2.5-32b", "rtx-4090", 2, onMap(training(1)), []string{"recompute=full lora_rank=16 lora_targets=all-linear quantize=nf4 (the model itself frozen)"}},
		{"QLoRA of 70B", "llama-3.1-70b", "rtx-4090", 4, onMap(training(1)), []string{"recompute=full lora_rank=16 lora_targets=all-linear quantize=nf4 (the model itself frozen)"}},
		{"QLoRA on more GPUs", "qwen2.5-32b", "rtx-4090", 1, onMap(training(1)), []string{"gpus=2 recompute=full lora_rank=16 lora_targets=all-linear quantize=nf4 (the model itself frozen)"}},
		{"of adapters that are asked for", "qwen2.5-32b", "rtx-4090", 2, adapters(onMap(training(1)), 8), []string{"recompute=full quantize=nf4"}},
		{"QLoRA under FSDP", "llama-3.1-8b", "rtx-4090", 4, under(training(4), costmodel.FSDP), []string{"recompute=full lora_rank=16 lora_targets=all-linear quantize=nf4 (the model itself frozen)"}},
		{"ZeRO offload of a map", "llama-3.1-8b", "rtx-4090", 2, onMap(training(1)), []string{"offload=cpu strategy=zero3 (slower, "}},
		{"ZeRO offload of its stage", "llama-3.1-8b", "rtx-4090", 4, under(training(1), costmodel.Zero2), []string{"offload=cpu recompute=full (slower, "}},
		{"the last logits", "llama-3.1-8b", "rtx-4090", 1, inference(4, 8192), []string{"new_tokens=1 (logits of the last position alone)", "seq=4096"}},
		{"a chunked loss", "llama-3.1-8b", "h100-80gb", 2, onMap(training(4)), []string{"loss=chunked"}},
		{"QLoRA of 70B on two GPUs", "llama-3.1-70b", "rtx-4090", 2, onMap(training(1)), []string{"seq=512 ", "gpus=3 recompute=full lora_rank=16 lora_targets=all-linear quantize=nf4"}},
		{"a shorter sequence", "llama-3.1-8b", "rtx-4090", 1, inference(1, 65536), []string{"seq=16384"}},
		{"a smaller evaluation", "llama-3.2-1b", "rtx-4090", 4, evaluated(under(training(1), costmodel.FSDP)), []string{"eval_batch=1"}},
		{"FSDP of a map", "llama-3.1-8b", "h100-80gb", 2, onMap(training(4)), []string{"strategy=fsdp"}},
		{"FSDP of DDP", "llama-3.1-8b", "h100-80gb", 4, under(training(8), costmodel.DDP), []string{"recompute=full strategy=fsdp"}},
		{"more GPUs under another strategy", "llama-3.1-405b", "rtx-4090", 1, under(inference(1, 2048), costmodel.DDP), []string{"gpus=42 strategy=device-map"}},
		{"edits on a larger GPU", "llama-3.1-405b", "rtx-4090", 4, under(quantised(adapters(training(1), 16)), costmodel.DDP), []string{"gpu=b300-288gb recompute=full"}},
		{"all blocks of a list under FSDP", "llama-3.2-1b", "rtx-4090", 4, recomputed(under(training(4), costmodel.FSDP), "0"), []string{"recompute=full", "recompute=auto"}},
		{"all blocks of a list under DDP", "llama-3.2-1b", "rtx-4090", 4, recomputed(under(training(4), costmodel.DDP), "0-5,9"), []string{"recompute=full", "recompute=auto"}},
		{"a larger GPU", "llama-3.1-8b", "rtx-4090", 2, onMap(training(1)), []string{"gpu=a100-40gb"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := problem(t, c.model, c.gpu, c.gpus, c.workload)
			changes := strategy.Smallest(t.Context(), p, strategy.Options{})
			for _, want := range c.want {
				if !slices.ContainsFunc(changes, func(change strategy.Change) bool { return strings.Contains(what(&change), want) }) {
					t.Errorf("no %q among %q", want, whats(changes))
				}
			}
			for i := range changes {
				checkPlanned(t, &changes[i])
			}
		})
	}
}

// A model that the user builds on the GPU stays there, so that the plan does not fit. A model of
// an open place is on the CPU if the GPU is too small.
func TestBuiltOn(t *testing.T) {
	for at, fits := range map[string]bool{"": true, "cpu": true, "gpu": false} {
		workload := under(adapters(training(1), 8), costmodel.FSDP)
		workload.Preset, workload.BuiltOn, workload.Recompute, workload.Seq = "transformers", at, costmodel.RecomputeFull, 512
		asked := problem(t, "llama-3.1-8b", "v100-16gb", 8, workload)
		_, err := planner.Solve(t.Context(), asked, planner.Settings{})
		if large := (*planner.InfeasibleError)(nil); fits && err != nil || !fits && !errors.As(err, &large) {
			t.Errorf("built on %q: %v", at, err)
		}
		changes := strategy.Smallest(t.Context(), asked, strategy.Options{})
		if !fits && !slices.ContainsFunc(changes, func(change strategy.Change) bool { return strings.HasPrefix(what(&change), "built_on=cpu") }) {
			t.Errorf("no built_on=cpu among %q", whats(changes))
		}
	}
}

// recomputed is a workload with its blocks that run again.
func recomputed(workload costmodel.Workload, blocks string) costmodel.Workload {
	workload.Recompute = blocks
	return workload
}

// checkPlanned plans a change with its settings, with pools followed.
func checkPlanned(t *testing.T, change *strategy.Change) {
	t.Helper()
	to := *change.To
	to.Workload, to.Costs = change.Row.Workload, nil
	to, err := to.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	solution, err := planner.Solve(t.Context(), to, planner.Settings{})
	if err != nil {
		t.Errorf("%s: %v", what(change), err)
		return
	}
	if solution.Verdict != change.Row.Solution.Verdict {
		t.Errorf("%s: %s, and its plan is %s", what(change), change.Row.Solution.Verdict, solution.Verdict)
	}
}

// TestRemedyOrder: changes without an effect on results come first, then each class in its order. A
// change of several fields is of the last class among them.
func TestRemedyOrder(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "h100-80gb", 2, onMap(training(4)))
	classes := []string{"", "optimizer", "lora_rank", "quantize", "batch", "seq", "strategy", "gpus", "gpu"}
	seen := map[int]bool{}
	last := 0
	for _, change := range strategy.Smallest(t.Context(), p, strategy.Options{}) {
		class := 0
		for _, setting := range change.Set {
			class = max(class, slices.Index(classes, setting.Field))
		}
		if class < last {
			t.Errorf("%q comes after a %s", what(&change), classes[last])
		}
		last, seen[class] = class, true
	}
	if len(seen) < len(classes)-1 { // full precision adapters are enough
		t.Errorf("only the classes %v", seen)
	}
}

// TestUsefulRemedies: no remedy adds to an earlier one of its strategy and leaves the fullest GPU
// as full. Quantised weights are dequantised before each product, and may add more than they save.
func TestUsefulRemedies(t *testing.T) {
	p := problem(t, "llama-3.1-8b", "rtx-4090", 2, onMap(training(4)))
	changes := strategy.Smallest(t.Context(), p, strategy.Options{})
	for i := range changes {
		for j := range changes[:i] {
			earlier := &changes[j]
			if len(earlier.Set) >= len(changes[i].Set) || earlier.Row.Resolved.Strategy != changes[i].Row.Resolved.Strategy || slices.ContainsFunc(earlier.Set, func(setting costmodel.Setting) bool { return !slices.Contains(changes[i].Set, setting) }) {
				continue
			}
			if changes[i].Row.Solution.LargestShare >= earlier.Row.Solution.LargestShare {
				t.Errorf("%s: %.4f, no less than %s: %.4f", what(&changes[i]), changes[i].Row.Solution.LargestShare, what(earlier), earlier.Row.Solution.LargestShare)
			}
		}
	}
	if len(changes) < 3 {
		t.Errorf("only %q", whats(changes))
	}
}

// TestLargerGPU: a larger GPU is not slower than the requested one.
func TestLargerGPU(t *testing.T) {
	for _, name := range []string{"rtx-4090", "a100-40gb", "l4-24gb", "h100-80gb"} {
		now, err := catalogue.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		p := problem(t, "llama-3.1-8b", name, 2, onMap(training(2)))
		if fits(t, p) {
			continue
		}
		for _, change := range strategy.Smallest(t.Context(), p, strategy.Options{}) {
			if change.Set[0].Field != "gpu" {
				continue
			}
			gpu, err := catalogue.Find(change.Set[0].Value)
			if err != nil || gpu.BF16FLOPS < now.BF16FLOPS || gpu.BytesPerSecond < now.BytesPerSecond || gpu.CapacityBytes <= now.CapacityBytes {
				t.Errorf("%s in place of %s: %v", gpu.Name, name, err)
			}
		}
	}
}

func onMap(workload costmodel.Workload) costmodel.Workload {
	return under(workload, costmodel.DeviceMap)
}

func under(workload costmodel.Workload, strategy costmodel.Strategy) costmodel.Workload {
	workload.Strategy = strategy
	return workload
}

func adapters(workload costmodel.Workload, rank int64) costmodel.Workload {
	workload.LoRARank, workload.LoRATargets = rank, []string{"all-linear"}
	return workload
}

func quantised(workload costmodel.Workload) costmodel.Workload {
	workload.Quantize = "nf4"
	return workload
}

func inference(batch, seq int64) costmodel.Workload {
	return onMap(costmodel.Workload{Mode: costmodel.Infer, Batch: batch, Seq: seq})
}

// evaluated is a step of Trainer with a large evaluation.
func evaluated(workload costmodel.Workload) costmodel.Workload {
	workload.Preset, workload.EvalBatch = "transformers", 64
	return workload
}
