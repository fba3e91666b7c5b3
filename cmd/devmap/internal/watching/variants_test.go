package watching

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func planOf(t *testing.T, graph *modelgraph.Graph, workload costmodel.Workload) *devicemap.Plan {
	t.Helper()
	return planOn(t, graph, workload, &costmodel.Topology{Devices: []costmodel.Device{{CapacityBytes: 16 << 30}, {CapacityBytes: 16 << 30}}})
}

func planOn(t *testing.T, graph *modelgraph.Graph, workload costmodel.Workload, topo *costmodel.Topology) *devicemap.Plan {
	t.Helper()
	solution := fixtures.Must(planner.Plan(t.Context(), graph, workload, topo))(t)
	if !workload.Strategy.Traits().Sequential || workload.Strategy == costmodel.Pipeline {
		workload.World = int64(len(topo.Devices))
	}
	table := fixtures.Must(ask.Costs(graph, workload))(t)
	return devicemap.NewPlan(graph, table, topo, solution.Map, solution.Devices)
}

func never() bool { return false }

// measuredAs returns devices with these allocated peaks.
func measuredAs(peaks ...int64) (all []watch.Measured) {
	for i, peak := range peaks {
		all = append(all, watch.Measured{Device: i, Torch: &watch.OnGPU{Processes: 1, Allocated: watch.Peak{Low: peak, High: peak}, Reserved: watch.Peak{Low: peak, High: peak}}})
	}
	return all
}

// singles returns the variants with one change.
func singles(graph *modelgraph.Graph, plan *devicemap.Plan) (all []watch.Variant) {
	for variant := range Variants(graph, plan, never) {
		if variant.Changes > 1 {
			break
		}
		all = append(all, variant)
	}
	return all
}

func explain(graph *modelgraph.Graph, plan *devicemap.Plan, measured []watch.Measured) []watch.Explanation {
	return watch.Explain(plan, measured, func() (iter.Seq[watch.Variant], error) { return Variants(graph, plan, never), nil })
}

// TestVariants: the reasons name the setting in which a command differs from its plan. This also
// works under a map, and if every GPU has the whole model.
func TestVariants(t *testing.T) {
	t.Parallel()
	graph := fixtures.Must(load.Model("../../../../fixtures/models/qwen2.5-0.5b", load.Options{}))(t)
	named := 0
	for _, strategy := range []costmodel.Strategy{costmodel.DeviceMap, costmodel.Pipeline, costmodel.DDP} {
		workload := costmodel.Workload{Mode: costmodel.Train, Strategy: strategy, Batch: 8, MicroBatches: 2, Seq: 512, Recompute: costmodel.RecomputeFull}
		plan := planOf(t, graph, workload)
		variants := singles(graph, plan)
		for _, setting := range []string{"--recompute none", "--attention eager", "--batch 16", "--seq 256", "--optimizer sgd", "--precision bf16-mixed"} {
			at := slices.IndexFunc(variants, func(variant watch.Variant) bool { return variant.Setting == setting })
			if at < 0 {
				t.Errorf("%s: no variant with %s among %d", strategy, setting, len(variants))
				continue
			}
			var peaks []int64 // the peaks with that setting
			for _, device := range variants[at].Devices {
				peaks = append(peaks, device.Predicted.PeakAllocatedBytes)
			}
			for _, explained := range explain(graph, plan, measuredAs(peaks...)) {
				reasons := strings.Join(explained.Reasons, "\n")
				differs := !strings.Contains(explained.Reasons[0], "as predicted") // the difference exceeds the plan's accuracy
				if differs {
					named++
				}
				if differs && !strings.Contains(reasons, "with "+setting+" the same plan would predict") {
					t.Errorf("%s, %s: %q", strategy, setting, explained.Reasons)
				}
			}
		}
	}
	if named < 20 { // of 3 strategies, 6 settings and 2 GPUs
		t.Errorf("%d settings were named", named)
	}
}

// TestIssueRuns explains runs of Transformers' Trainer that were planned as a loop by hand (issue
// 37). The cause under FSDP2 is the preset, alone or with another forgotten setting. Under a device
// map it is that the caller keeps only the loss. A plan of an older devmap with other peaks is
// explained, too. Peaks that no setting predicts are reported as that.
func TestIssueRuns(t *testing.T) {
	t.Parallel()
	fsdp := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.FSDP, Precision: costmodel.BF16Mixed, Batch: 2, Seq: 2048}
	checkpointed := fsdp
	checkpointed.Seq, checkpointed.Recompute = 4096, costmodel.RecomputeFull
	placed := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DeviceMap, Batch: 4, Seq: 2048}
	trainable := fsdp
	trainable.Precision = ""
	for _, is := range []struct {
		model    string
		workload costmodel.Workload
		older    int64 // how much higher that devmap's peaks were
		first    float64
		want     string
	}{
		{"llama-3.2-3b", fsdp, 0, 29.76, "with --preset transformers the same plan would predict 29.75 GiB"},
		{"llama-3.1-8b", checkpointed, 0, 37.47, "with --preset transformers the same plan would predict 37.47 GiB"},
		{"qwen2.5-3b", placed, 0, 15.743, "with --loss-only the same plan would predict 15.74 GiB"},
		{"qwen2.5-3b", placed, 1 << 20, 15.743, "with --loss-only the same plan would predict 15.74 GiB"},
		{"qwen2.5-3b", placed, 1 << 30, 18.06, "with this version of devmap the same plan would predict 18.06 GiB"},
		{"llama-3.2-3b", trainable, 0, 29.76, "with --preset transformers --precision bf16-mixed the same plan would predict 29.75 GiB"},
		{"llama-3.2-3b", trainable, 0, 16.396, "with --preset transformers --precision bf16-mixed --recompute full the same plan would predict 16.40 GiB"},
		{"qwen2.5-0.5b", fsdp, 0, 1200, "other settings, alone or together, predicts what was allocated on every GPU"},
	} {
		graph := fixtures.Must(load.Model("../../../../fixtures/models/"+is.model, load.Options{}))(t)
		gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
		device := gpu.Device(costmodel.Train)
		plan := planOn(t, graph, is.workload, &costmodel.Topology{Devices: []costmodel.Device{device, device, device, device}})
		var peaks []int64
		for i := range plan.Devices {
			peaks = append(peaks, plan.Devices[i].Predicted.PeakAllocatedBytes)
			plan.Devices[i].Predicted.PeakAllocatedBytes += is.older
			if i == 0 || is.workload.Strategy == costmodel.FSDP {
				peaks[i] = int64(is.first * (1 << 30))
			}
		}
		got := explain(graph, plan, measuredAs(peaks...))
		if len(got) != 4 || !strings.Contains(strings.Join(got[0].Reasons, "; "), is.want) {
			t.Errorf("%s, measured %v GiB:\n%q\nwant %q", is.model, is.first, got[0].Reasons, is.want)
		}
	}
}

// TestLate: the search ends when its time is over.
func TestLate(t *testing.T) {
	t.Parallel()
	graph := fixtures.Must(load.Model("../../../../fixtures/models/qwen2.5-0.5b", load.Options{}))(t)
	plan := planOf(t, graph, costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DDP, Batch: 1, Seq: 512})
	asked := 0
	if got := slices.Collect(Variants(graph, plan, func() bool { asked++; return asked > 3 })); len(got) > 3 || asked != 4 {
		t.Errorf("%d variants, asked %d times", len(got), asked)
	}
}

// TestOthers: the other values of plain settings.
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

// TestTrainerVariant: a trainer's command is recognized and named, with a setting that belongs to
// it.
func TestTrainerVariant(t *testing.T) {
	t.Parallel()
	graph := fixtures.Must(load.Model("../../../../fixtures/models/qwen2.5-0.5b", load.Options{}))(t)
	plan := planOf(t, graph, costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.FSDP, Batch: 1, Seq: 512})
	var settings []string
	for variant := range Variants(graph, plan, never) {
		if variant.Changes > 2 {
			break
		}
		settings = append(settings, variant.Setting)
	}
	for _, setting := range []string{"--preset transformers", "--precision bf16-mixed", "--preset transformers --precision bf16-mixed"} {
		if !slices.Contains(settings, setting) {
			t.Errorf("no variant with %s among %q", setting, settings)
		}
	}
}
