package watching

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func planOf(t *testing.T, graph *modelgraph.Graph, workload costmodel.Workload) *devicemap.Plan {
	t.Helper()
	topo := &costmodel.Topology{Devices: []costmodel.Device{{CapacityBytes: 16 << 30}, {CapacityBytes: 16 << 30}}}
	solution, err := planner.Plan(t.Context(), graph, workload, topo)
	if err != nil {
		t.Fatal(err)
	}
	workload.World = 2
	table, err := ask.Costs(graph, workload)
	if err != nil {
		t.Fatal(err)
	}
	return devicemap.NewPlan(graph, table, topo, solution.Map, solution.Devices)
}

// TestVariants: the reasons name the setting of a command that is not its plan's, under a map
// and if every GPU has the whole model.
func TestVariants(t *testing.T) {
	t.Parallel()
	graph, err := load.Model("../../../../fixtures/models/qwen2.5-0.5b", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, strategy := range []costmodel.Strategy{costmodel.DeviceMap, costmodel.Pipeline, costmodel.DDP} {
		workload := costmodel.Workload{Mode: costmodel.Train, Strategy: strategy, Batch: 8, MicroBatches: 2, Seq: 512, Recompute: costmodel.RecomputeFull}
		plan := planOf(t, graph, workload)
		variants := Variants(graph, plan)
		for _, setting := range []string{"--recompute none", "--attention eager", "--batch 16", "--seq 256", "--optimizer sgd", "--precision bf16-mixed"} {
			at := slices.IndexFunc(variants, func(variant watch.Variant) bool { return variant.Setting == setting })
			if at < 0 {
				t.Errorf("%s: no variant with %s among %d", strategy, setting, len(variants))
				continue
			}
			var measured []watch.Measured // as that setting has it
			for i, device := range variants[at].Devices {
				peak := device.Predicted.PeakAllocatedBytes
				measured = append(measured, watch.Measured{Device: i, Torch: &watch.OnGPU{Processes: 1, Allocated: watch.Peak{Low: peak, High: peak}, Reserved: watch.Peak{Low: peak, High: peak}}})
			}
			for _, explained := range watch.Explain(plan, measured, func() []watch.Variant { return variants }) {
				reasons := strings.Join(explained.Reasons, "\n")
				differs := !strings.Contains(explained.Reasons[0], "as predicted") // by more than the plan's accuracy
				if differs {
					named++
				}
				if differs && !strings.Contains(reasons, "with "+setting+" the same plan would predict") {
					t.Errorf("%s, %s: %q", strategy, setting, explained.Reasons)
				}
			}
		}
		plan.Devices[0].Predicted.PeakAllocatedBytes++
		if stale := Variants(graph, plan); len(stale) != 0 {
			t.Errorf("%s: a plan of another day has %d variants", strategy, len(stale))
		}
	}
	if named < 20 { // of 3 strategies, 6 settings and 2 GPUs
		t.Errorf("%d settings were named", named)
	}
}

// TestOthers: plain settings are changed by what they are.
func TestOthers(t *testing.T) {
	t.Parallel()
	workload := costmodel.Workload{Batch: 6, LoRARank: 8, Recompute: costmodel.RecomputeNone}
	want := map[string]string{"batch": "12 24 3", "lora_rank": "0", "recompute": "none full selective", "loss_only": "true"}
	for _, field := range costmodel.Fields() {
		if want[field.Name] == "" {
			continue
		}
		var got []string
		for _, set := range others(&field, &workload) {
			changed := workload
			words := strings.Fields(ask.Say(set(&changed)))
			got = append(got, strings.TrimPrefix(words[len(words)-1], "--loss-only="))
		}
		if text := strings.Join(got, " "); text != want[field.Name] && field.Name != "loss_only" {
			t.Errorf("%s: %q, want %q", field.Name, text, want[field.Name])
		}
	}
}

// TestTrainerVariant: a command that is a trainer's is named, with a setting that
// comes with it.
func TestTrainerVariant(t *testing.T) {
	t.Parallel()
	graph, err := load.Model("../../../../fixtures/models/qwen2.5-0.5b", load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan := planOf(t, graph, costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.FSDP, Batch: 1, Seq: 512})
	var settings []string
	for _, variant := range Variants(graph, plan) {
		settings = append(settings, variant.Setting)
	}
	for _, setting := range []string{"--preset transformers", "--precision bf16-mixed", "--preset transformers --precision bf16-mixed"} {
		if !slices.Contains(settings, setting) {
			t.Errorf("no variant with %s among %q", setting, settings)
		}
	}
}
