package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/page"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestPageFacts: a page says what the terminal's header says, and what a table of GPUs says.
func TestPageFacts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tinyGGUF(t, dir)
	for args, says := range map[string][]string{
		"qwen2.5-0.5b --gpus 2 --gpu rtx-4090 --mode train --batch 2 --compile --strategy ddp": {
			`"Workload","value":"training, batch 2 × 2048 per GPU, bf16-true, adamw"`, `"Strategy","value":"ddp (torch)"`, `"peak_open":true`, `"peak_range_bytes":[1`,
		},
		"llama-3.2-1b --gpus 1 --gpu h200-141gb --batch 4 --lengths 600,4096 --packing padding-free": {`"usual_peak_bytes":1`},
		"qwen2.5-3b --gpus 2 --gpu a10g-24gb --mode train --batch 4 --recompute full":                {"recompute full", "GPU 1 is tight."},
		"llama-3.1-8b --gpus 8 --gpu h100-80gb --mode train --strategy pipeline --dp auto --tp auto --batch 16 --micro-batches 8": {
			`"Degrees","value":"dp `, `"Stages","value":"GPU`,
		},
		"llama-3.2-1b --gpus 2 --gpu h200-141gb --mode train --strategy pipeline --runtime devmap --batch 16 --micro-batches 4 --offload-activations full": {
			`"Workload","value":"training, batch 16 × 2048, bf16-true, adamw, 4 micro-batches, offload-activations full"`, `"host_bytes":6728712192`,
		},
		"llama-3.1-70b --runtime vllm --gpus 4 --gpu h200-141gb": {
			`"Workload","value":"serving 1,024 × 131,072 tokens, auto cache"`, `"Strategy","value":"vllm"`, `"Degrees","value":"tp 4"`, `"KV tokens","value":"1,184,832"`,
			`"layers":"model.embed_tokens, model.layers.0 – model.layers.79, model.norm`, `"overhead":"CUDA context and the margin"`,
		},
		"flux.1-dev --gpus 2 --gpu rtx-4090":                         {"Feasible: diffusion pipelines have no lower bound."},
		filepath.Join(dir, "tiny.gguf") + " --gpus 2 --gpu rtx-4090": {`"Strategy","value":"llama.cpp"`, `"layers":"blk.0`, `"On the CPU","value":"token_embd"`},
	} {
		plan := filepath.Join(t.TempDir(), "plan.json")
		devmap(t, 0, append([]string{"plan", "-o", plan}, strings.Fields(args)...)...)
		text := string(devmap(t, 0, "report", plan, "--json"))
		for _, words := range says {
			if !strings.Contains(strings.ReplaceAll(text, `"name":`, ""), words) {
				t.Errorf("%s: the page does not say %s", args, words)
			}
		}
	}
}

// TestPageInterrupted: an interrupted search is not one that found no change.
func TestPageInterrupted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plan.json")
	devmap(t, 0, "plan", "gpt2", "--gpus", "2", "--gpu", "rtx-4090", "--mode", "train", "-o", file)
	plan := fixtures.Must(devicemap.ReadPlan(file))(t)
	graph := fixtures.Must(plannedModel(plan, file, ""))(t)
	asked := ask.OfPlan(t.Context(), plan, graph)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	source := &page.Source{Plan: plan}
	helped(ctx, source, asked, "gpt2")
	if !strings.HasPrefix(source.NoChanges, "No change was tried: the search was interrupted") {
		t.Errorf("%d changes, %q", len(source.Changes), source.NoChanges)
	}
}
