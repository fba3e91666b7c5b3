package estimate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

func trainerStep(strategy costmodel.Strategy, world int64) costmodel.Workload {
	return costmodel.Workload{Mode: costmodel.Train, Preset: "transformers", Strategy: strategy, World: world, Batch: 1, Seq: 512, LossOnly: true, BuiltOn: "cpu"}
}

func stepTable(t *testing.T, graph *modelgraph.Graph, workload costmodel.Workload) *costmodel.Table {
	t.Helper()
	workload, err := estimate.Resolve(graph, workload)
	if err != nil {
		t.Fatal(err)
	}
	table := fixtures.Must(estimate.Table(graph, workload))(t)
	return table
}

func stepPeak(t *testing.T, table *costmodel.Table) (int64, string) {
	t.Helper()
	step := fixtures.Must(timeline.Replica(table, &costmodel.Device{CapacityBytes: 1 << 40}))(t)
	peak := step.Peak()
	return peak.Memory.Total(), peak.At
}

func smallModel(t *testing.T, name string) *modelgraph.Graph {
	t.Helper()
	graph := fixtures.Must(load.Model("../../fixtures/models/"+name, load.Options{}))(t)
	return graph
}

// TestLightningAdapters: DDP has no flat parameter, FSDP1 does.
func TestLightningAdapters(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "qwen2.5-0.5b")
	for strategy, counted := range map[costmodel.Strategy]bool{costmodel.DDP: true, costmodel.FSDP: false} {
		workload := costmodel.Workload{Mode: costmodel.Train, Preset: "lightning", Runtime: "lightning", Strategy: strategy, World: 4, Batch: 1, Seq: 512, LoRARank: 16}
		if _, err := estimate.Resolve(graph, workload); (err == nil) != counted {
			t.Errorf("%s: %v", strategy, err)
		}
	}
}

// TestMomentsRefused: what no program does is refused, with what works.
func TestMomentsRefused(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "qwen2.5-0.5b")
	for _, is := range []struct {
		field string
		set   func(*costmodel.Workload)
		says  string
	}{
		{"eval_samples", func(w *costmodel.Workload) { w.EvalSamples = 64 }, "eval_batch=8"},
		{"eval_batch", func(w *costmodel.Workload) { w.EvalBatch, w.Preset = 8, "" }, "preset=transformers"},
		{"eval_batch", func(w *costmodel.Workload) { w.EvalBatch, w.Strategy, w.BuiltOn = 8, costmodel.DeviceMap, "" }, "leave it out, or use strategy=ddp"},
		{"eval_batch", func(w *costmodel.Workload) { w.EvalBatch, w.Preset, w.Runtime = 8, "lightning", "lightning" }, "does not run under strategy=ddp: leave it out"},
		{"compile", func(w *costmodel.Workload) {
			w.Compile, w.Preset, w.Strategy, w.BuiltOn = true, "torchtitan", costmodel.FSDP, ""
		}, "hsdp alone: leave it out"},
		{"liger", func(w *costmodel.Workload) { w.Liger, w.Loss = true, "tiled" }, "loss=tiled is not: leave out one of both"},
		{"liger", func(w *costmodel.Workload) { w.Liger, w.Loss = true, "chunked" }, "loss=chunked is not: leave out one of both"},
		{"optimizer", func(w *costmodel.Workload) {
			w.Optimizer, w.Preset, w.Strategy, w.BuiltOn = "adamw-8bit", "torchtitan", costmodel.FSDP, ""
		}, "optimizer=adamw"},
		{"preset", func(w *costmodel.Workload) {
			w.Preset, w.Runtime, w.Strategy, w.BuiltOn = "openpi:pi0_libero", "jax", costmodel.FSDP, ""
		}, "pi0"},
		{"optimizer_in_backward", func(w *costmodel.Workload) { w.OptimizerInBackward = true }, "leave out one of both"},
		{"optimizer_in_backward", func(w *costmodel.Workload) { w.OptimizerInBackward, w.Preset = true, "" }, "strategy=fsdp"},
		{"optimizer_in_backward", func(w *costmodel.Workload) {
			w.OptimizerInBackward, w.Preset, w.Strategy, w.Batch, w.MicroBatches = true, "", costmodel.FSDP, 2, 2
		}, "micro_batches=1"},
		{"optimizer_in_backward", func(w *costmodel.Workload) {
			w.OptimizerInBackward, w.Preset, w.Strategy = true, "", costmodel.Zero3
		}, "fsdp, hsdp or device-map"},
		{"compile", func(w *costmodel.Workload) { w.Compile, w.Strategy, w.BuiltOn = true, costmodel.DeviceMap, "" }, "strategy=ddp"},
		{"compile", func(w *costmodel.Workload) { w.Compile, w.Strategy = true, costmodel.Zero2 }, "strategy=ddp"},
		{"compile", func(w *costmodel.Workload) {
			*w = costmodel.Workload{Mode: costmodel.Infer, Compile: true}
		}, "mode=train"},
		{"eval_batch", func(w *costmodel.Workload) {
			*w = costmodel.Workload{Mode: costmodel.Infer, EvalBatch: 8}
		}, "mode=train"},
	} {
		workload := trainerStep(costmodel.DDP, 2)
		is.set(&workload)
		_, err := estimate.Resolve(graph, workload)
		var fault *costmodel.FieldError
		if !errors.As(err, &fault) || fault.Field != is.field || !strings.Contains(err.Error(), is.says) {
			t.Errorf("%s: %v, want %q", is.field, err, is.says)
		}
	}
}

// TestMoments: a larger evaluation batch, or many kept logits, set the peak, and neither lowers it;
// a checkpoint gathers the largest parameter.
func TestMoments(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "llama-3.2-1b")
	const logits = 512 * 128256
	for _, strategy := range []costmodel.Strategy{costmodel.DDP, costmodel.FSDP, costmodel.HSDP, costmodel.Zero3} {
		workload := trainerStep(strategy, 4)
		step, at := stepPeak(t, stepTable(t, graph, workload))
		workload.EvalBatch = 1
		if one, same := stepPeak(t, stepTable(t, graph, workload)); one != step || same != at {
			t.Errorf("%s: with an evaluation of one sequence %d at %s, without %d at %s", strategy, one, same, step, at)
		}
		workload.EvalBatch = 32
		many, at := stepPeak(t, stepTable(t, graph, workload))
		if many <= step || !strings.HasPrefix(at, "evaluation, ") {
			t.Errorf("%s: an evaluation of 32 sequences takes %d at %s, a step %d", strategy, many, at, step)
		}
		workload.EvalSamples = 32 * 4 * 2 // retained, and joined to a batch's
		retained, at := stepPeak(t, stepTable(t, graph, workload))
		if least := int64(2 * 2 * 256 * logits); retained < least || at != "evaluation, logits that are kept" {
			t.Errorf("%s: logits of 256 samples take %d at %s, at least %d", strategy, retained, at, least)
		}
	}
	workload := trainerStep(costmodel.FSDP, 4)
	workload.Precision = costmodel.BF16Mixed
	if got := stepTable(t, graph, workload).Saving; got != 4*128256*2048 {
		t.Errorf("a checkpoint gathers %d, want the fp32 embedding", got)
	}
	if got := stepTable(t, graph, trainerStep(costmodel.DDP, 4)).Saving; got != 0 {
		t.Errorf("under DDP a checkpoint gathers %d", got)
	}
}

// TestInBackward: gradients exist one at a time, FSDP2's a group at a time.
func TestInBackward(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "llama-3.1-8b")
	workload := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DeviceMap, Batch: 1, Seq: 512, OptimizerInBackward: true}
	for _, unit := range stepTable(t, graph, workload).Units {
		for _, layer := range unit.Layers {
			if layer.Grads != 0 || layer.BackwardGrads != 0 {
				t.Errorf("%s leaves %d of gradients", layer.Layer, layer.Grads)
			}
		}
	}
	workload.Strategy, workload.World, workload.Seq = costmodel.FSDP, 4, 64
	in, _ := stepPeak(t, stepTable(t, graph, workload))
	workload.OptimizerInBackward = false
	after, _ := stepPeak(t, stepTable(t, graph, workload))
	if shards := graph.ParamCount() * 2 / 4; after-in < shards/2 {
		t.Errorf("in backward %d, after it %d: the gradients' shards are %d", in, after, shards)
	}
}

// TestEmbeddingStates: Transformers' Trainer keeps embeddings' fp32 states, a loop by hand does
// not.
func TestEmbeddingStates(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "llama-3.2-1b")
	const table = 128256 * 2048
	for preset, want := range map[string]int64{"": 2 * (table + 4*table/256), "transformers": 8 * table} {
		workload := trainerStep(costmodel.DDP, 1)
		workload.Preset, workload.Optimizer, workload.BuiltOn = preset, "adamw-8bit", ""
		if got := stepTable(t, graph, workload).Units[0].OptimizerState; got != want {
			t.Errorf("preset %q: the embedding's states are %d, want %d", preset, got, want)
		}
	}
	workload := trainerStep(costmodel.DDP, 1)
	workload.Optimizer, workload.BuiltOn = "paged-adamw-8bit", ""
	paged := stepTable(t, graph, workload)
	if got := paged.Units[0].OptimizerState; got != 0 {
		t.Errorf("states of %d are not in unified memory", got)
	}
	if !strings.Contains(paged.Warnings[len(paged.Warnings)-1].String()+paged.Warnings[0].String(), "CUDA's unified memory") {
		t.Errorf("%v", paged.Warnings)
	}
}

// TestCompiledRange: a compiled step has a range; its least is one graph's.
func TestCompiledRange(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "llama-3.2-1b")
	workload := trainerStep(costmodel.DDP, 1)
	workload.BuiltOn, workload.Seq = "", 2048
	eager, _ := stepPeak(t, stepTable(t, graph, workload))
	workload.Compile = true
	table := stepTable(t, graph, workload)
	most, _ := stepPeak(t, table)
	least, _ := stepPeak(t, table.Least)
	if most != eager || least >= most || least < most/2 {
		t.Errorf("a compiled step takes %d to %d, the modules' own kernels %d", least, most, eager)
	}
}

// TestLabelTokens: TRL's tiled loss keeps as much for 100 labels of a long sample as for a sample of 101
// tokens, whose last one carries no label. A warning names a number of labels without effect.
func TestLabelTokens(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "qwen2.5-0.5b")
	tiled := func(seq int64, labels float64) *costmodel.Table {
		run := trainerStep(costmodel.DDP, 2)
		run.Preset, run.Loss, run.Seq, run.LabelTokens = "trl-sft", "tiled", seq, labels
		return stepTable(t, graph, run)
	}
	head := func(table *costmodel.Table) int64 {
		for _, unit := range table.Units {
			for _, layer := range unit.Layers {
				if layer.Loss {
					return layer.Saved
				}
			}
		}
		t.Fatal("no layer has the loss")
		return 0
	}
	if got, want := head(tiled(512, 100)), head(tiled(101, 0)); got != want {
		t.Errorf("100 labels keep %d bytes, 101 tokens %d", got, want)
	}
	says := func(table *costmodel.Table) bool {
		for _, warning := range table.Warnings {
			if strings.Contains(warning.String(), "makes the logits of all tokens") {
				return true
			}
		}
		return false
	}
	run := trainerStep(costmodel.DDP, 2)
	run.Preset, run.LabelTokens = "trl-sft", 100 // its loss is not tiled
	if says(tiled(512, 100)) || !says(stepTable(t, graph, run)) {
		t.Error("the warning is not that of a loss which makes all logits")
	}
}

// TestCompletionsAfterPrompts: GRPO trains on prompt and completion; lengths are prompts'.
func TestCompletionsAfterPrompts(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "qwen2.5-0.5b")
	run := trainerStep(costmodel.DDP, 2)
	run.Preset, run.Batch, run.Seq, run.NewTokens, run.Loss, run.Recompute = "trl-grpo", 16, 300, 200, "tiled", costmodel.RecomputeFull
	want, _ := stepPeak(t, stepTable(t, graph, run))
	labelled := run
	labelled.LabelTokens = 20
	if got, _ := stepPeak(t, stepTable(t, graph, labelled)); got != want {
		t.Errorf("with labels %d, without %d", got, want)
	}
	run.Seq, run.NewTokens = 400, 100
	if got, _ := stepPeak(t, stepTable(t, graph, run)); got > want || got < want*9/10 {
		t.Errorf("400 and 100 tokens need %d, 300 and 200 %d: the head alone differs", got, want)
	}
	run.Seq, run.NewTokens = 1000, 200
	if longer, _ := stepPeak(t, stepTable(t, graph, run)); longer <= want {
		t.Fatalf("prompts of 1000 tokens need %d, of 300 %d: nothing is tested", longer, want)
	}
	run.Lengths.Mean, run.Lengths.Max = 300, 300
	if got, _ := stepPeak(t, stepTable(t, graph, run)); got != want {
		t.Errorf("lengths of 300 need %d, a length of 300 %d", got, want)
	}
}

// TestPairsLabelled: the head of TRL's DPO reads only labelled positions.
func TestPairsLabelled(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "qwen2.5-0.5b")
	run := trainerStep(costmodel.DDP, 2)
	run.Preset, run.Batch, run.Seq, run.Loss, run.Recompute = "trl-dpo", 16, 1024, "tiled", costmodel.RecomputeFull
	head := func(labels float64) int64 {
		run.LabelTokens = labels
		table := stepTable(t, graph, run)
		unit := table.Units[len(table.Units)-1]
		return unit.Layers[len(unit.Layers)-1].Saved
	}
	if all, some := head(0), head(256); some*3 > all {
		t.Errorf("head keeps %d for a quarter of the positions, %d for all", some, all)
	}
}

// TestDecodersAlone: programs with modules or losses of their own train no other models.
func TestDecodersAlone(t *testing.T) {
	t.Parallel()
	for _, is := range []struct {
		preset, model string
		fits          bool
	}{
		{"torchtune", "qwen2.5-0.5b", true},
		{"torchtitan", "mixtral-8x7b", false},
		{"torchtune", "qwen2.5-vl-3b", false},
		{"trl-dpo", "vit-large", false},
		{"trl-dpo", "t5-11b", false},
		{"trl-sft", "mamba-2.8b", true},
		{"trl-dpo", "qwen2.5-vl-3b", true},
		{"transformers", "t5-11b", true},
	} {
		run := trainerStep(costmodel.FSDP, 2)
		run.Preset, run.Seq = is.preset, 0
		if _, err := estimate.Resolve(smallModel(t, is.model), run); (err == nil) != is.fits {
			t.Errorf("--preset %s of %s: %v", is.preset, is.model, err)
		}
	}
}

// TestReferenceOffloaded: FSDP2's CPU offload takes DPO's reference model along.
func TestReferenceOffloaded(t *testing.T) {
	t.Parallel()
	graph := smallModel(t, "qwen2.5-0.5b")
	run := trainerStep(costmodel.FSDP, 2)
	run.Preset, run.Loss = "trl-dpo", "tiled"
	here := stepTable(t, graph, run)
	run.HostStates = true
	away := stepTable(t, graph, run)
	if here.Reference.Params < 1<<28 || away.Reference.Params > 1<<20 {
		t.Errorf("the reference keeps %d, offloaded %d", here.Reference.Params, away.Reference.Params)
	}
	run.Preset = "trl-sft"
	if alone := stepTable(t, graph, run); away.HostBytes < alone.HostBytes*5/4 {
		t.Errorf("the host keeps %d, without a reference %d", away.HostBytes, alone.HostBytes)
	}
}
