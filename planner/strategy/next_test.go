package strategy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// TestNext: the obvious changes are reported, a GPU more never costs, and each improvement is real.
func TestNext(t *testing.T) {
	p := problem(t, "qwen2.5-vl-3b", "h100-80gb", 4, training(4))
	p.Workload.Strategy = costmodel.DeviceMap
	value := rowsOf(t, p)[0].Solution.Value
	changes := strategy.Next(t.Context(), p, strategy.Options{}, value)
	for _, want := range []string{
		"gpus=3", "gpus=5", "recompute=full", "micro_batches=4 (gradient accumulation)", "optimizer=adamw-8bit",
		"batch=2", "seq=1024", "contiguous=false", "gpu=h200-141gb", "loss=chunked",
	} {
		i := slices.IndexFunc(changes, func(c strategy.Change) bool { return what(&c) == want })
		if i < 0 {
			t.Errorf("no %q among %q", want, whats(changes))
			continue
		}
		if got := changes[i].Row.Solution.Value; (got < value) != (want != "gpus=3") {
			t.Errorf("%s: a largest share of %.4f, before %.4f", want, got, value)
		}
	}
	p.Workload = training(1)
	p.Workload.Strategy = costmodel.DeviceMap
	value = rowsOf(t, p)[0].Solution.Value
	if got := whats(strategy.Next(t.Context(), p, strategy.Options{}, value)); !slices.Contains(got, "lora_rank=16 lora_targets=all-linear (the model itself frozen)") {
		t.Errorf("no LoRA among %q", got)
	}
	p.Unconstrained = true
	for _, c := range strategy.Next(t.Context(), p, strategy.Options{}, value) {
		if strings.Contains(what(&c), "contiguous") {
			t.Errorf("%q is what the problem has", what(&c))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if changes := strategy.Next(ctx, p, strategy.Options{}, value); len(changes) > 0 {
		t.Errorf("tried after the end: %q", whats(changes))
	}
}

// TestNextPipeline: a pipeline, and a batch in some micro-batches, may have more of them.
func TestNextPipeline(t *testing.T) {
	for strategyOf, want := range map[costmodel.Strategy]string{costmodel.Pipeline: "micro_batches=16", costmodel.DeviceMap: "micro_batches=16 (gradient accumulation)"} {
		p := problem(t, "qwen2.5-3b", "h100-80gb", 4, training(16))
		p.Workload.Strategy, p.Workload.MicroBatches = strategyOf, 4
		if strategyOf == costmodel.Pipeline {
			p.Workload.Schedule = costmodel.OneFOneB
		}
		if got := whats(strategy.Next(t.Context(), p, strategy.Options{}, rowsOf(t, p)[0].Solution.Value)); !slices.Contains(got, want) {
			t.Errorf("%s: no %q among %q", strategyOf, want, got)
		}
	}
}

// TestNextSharded: parameters are sharded over the GPUs that there are.
func TestNextSharded(t *testing.T) {
	p := problem(t, "llama-3.2-1b", "h100-80gb", 4, training(1))
	p.Workload.Strategy, p.Workload.ShardDegree = costmodel.FSDP, 4
	changes := strategy.Next(t.Context(), p, strategy.Options{}, 1)
	for i, want := range []string{"gpus=3 (without shard_degree)", "gpus=5 (without shard_degree)"} {
		if what(&changes[i]) != want || len(changes[i].Row.Solution.Devices) != 3+2*i {
			t.Errorf("%q on %d GPUs, want %s", what(&changes[i]), len(changes[i].Row.Solution.Devices), want)
		}
	}
}
