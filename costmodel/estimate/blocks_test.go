package estimate_test

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

func blocksModel(t *testing.T, name string) *modelgraph.Graph {
	t.Helper()
	data := fixtures.Must(os.ReadFile("../../fixtures/models/" + name + "/config.json"))(t)
	graph := fixtures.Must(hf.FromConfig(name, data))(t)
	return graph
}

func unitsOf(t *testing.T, graph *modelgraph.Graph, workload costmodel.Workload, recompute string) []costmodel.Unit {
	t.Helper()
	workload.Recompute = recompute
	workload, err := estimate.Resolve(graph, workload)
	if err != nil {
		t.Fatal(err)
	}
	table := fixtures.Must(estimate.Table(graph, workload))(t)
	for unit := range table.Units {
		// The allocator's rests are followed only if all blocks are the same.
		table.Units[unit].Padding, table.Units[unit].StatePadding = 0, 0
	}
	return table.Units
}

// A note names the listed blocks of a tower that sees no images, and the blocks that run.
func TestIdleBlocks(t *testing.T) {
	const note = "blocks 0-3 see no tokens here, so recomputing them saves nothing; the blocks that run are 32-67"
	graph := blocksModel(t, "qwen2.5-vl-3b")
	for _, c := range []struct {
		recompute string
		images    int64
		want      bool
	}{{"0-3", 0, true}, {"0-3,40", 0, true}, {"32-40", 0, false}, {"0-3", 1, false}, {"full", 0, false}} {
		workload := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.FSDP, Runtime: "torch", World: 2, Batch: 1, Seq: 2048, Images: c.images, Recompute: c.recompute}
		table := fixtures.Must(estimate.Table(graph, fixtures.Must(estimate.Resolve(graph, workload))(t)))(t)
		noted := slices.ContainsFunc(table.Warnings, func(said costmodel.Message) bool { return strings.Contains(said.String(), note) })
		if noted != c.want {
			t.Errorf("%s, %d images: %v", c.recompute, c.images, table.Warnings)
		}
	}
}

// A list of all blocks costs what full does. A block of another list costs what it does in full, and
// each other block what it does without recomputation, up to what a block and the next one share.
func TestListedBlocks(t *testing.T) {
	for _, model := range []string{"llama-3.2-1b", "gemma-2b", "qwen2.5-3b"} {
		graph := blocksModel(t, model)
		blocks := 0
		for unit := range graph.Units {
			if len(graph.Units[unit].Exec) > 1 {
				blocks++
			}
		}
		all := make([]bool, blocks)
		for block := range all {
			all[block] = true
		}
		first := append([]bool{false}, all[1:]...)
		for _, workload := range []costmodel.Workload{
			{Strategy: costmodel.Pipeline, Runtime: costmodel.Devmap, World: 2},
			{Strategy: costmodel.Pipeline, Runtime: "torch", World: 2},
			{Strategy: costmodel.FSDP, Runtime: "torch", World: 2},
		} {
			workload.Mode, workload.Batch, workload.MicroBatches, workload.Seq, workload.Precision = costmodel.Train, 4, 2, 256, costmodel.BF16True
			if workload.Strategy == costmodel.FSDP {
				workload.MicroBatches = 1
			}
			none, full := unitsOf(t, graph, workload, costmodel.RecomputeNone), unitsOf(t, graph, workload, costmodel.RecomputeFull)
			text := costmodel.RecomputeOf(first)
			mixed := unitsOf(t, graph, workload, text)
			at := -1
			for unit := range mixed {
				if len(graph.Units[unit].Exec) < 2 {
					continue
				}
				want := full
				at++
				if at == 0 {
					want = none
				}
				got, other := mixed[unit], want[unit]
				got.CheckpointedOutput, other.CheckpointedOutput = 0, 0 // the next block's input
				if !reflect.DeepEqual(got, other) {
					t.Errorf("%s, %s on %s, blocks %s: unit %s is\n%+v, want\n%+v", model, workload.Strategy, workload.Runtime, text, got.Name, got, other)
					break
				}
			}
		}
	}
}

// Engines with one switch for all blocks refuse a list, and so does a list with a block too many.
func TestRefusedBlocks(t *testing.T) {
	graph := blocksModel(t, "llama-3.2-1b")
	for _, workload := range []costmodel.Workload{
		{Strategy: costmodel.DeviceMap, Recompute: "0-3"},
		{Strategy: costmodel.FSDP, Runtime: "torch", World: 2, Recompute: "0-99"},
		{Strategy: costmodel.Pipeline, Runtime: costmodel.Devmap, World: 2, Recompute: "16"},
		{Strategy: costmodel.Pipeline, Runtime: costmodel.Devmap, World: 2, Recompute: "3-1"},
	} {
		workload.Mode, workload.Batch, workload.Seq = costmodel.Train, 4, 256
		resolved, err := estimate.Resolve(graph, workload)
		if err == nil {
			_, err = estimate.Table(graph, resolved)
		}
		var field *costmodel.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%s, recompute %s: %v", workload.Strategy, workload.Recompute, err)
		}
	}
}

// TestRefusedOffloads: activations leave for the host in the training of devmap's pipelines alone.
func TestRefusedOffloads(t *testing.T) {
	graph := blocksModel(t, "llama-3.2-1b")
	for _, row := range []struct {
		runtime  string
		strategy costmodel.Strategy
		mode     costmodel.Mode
		blocks   string
		why      string
	}{
		{"torch", costmodel.Pipeline, costmodel.Train, "full", "only devmap's engine"},
		{costmodel.Devmap, costmodel.DeviceMap, costmodel.Train, "full", "in pipelines, also of one GPU"},
		{costmodel.Devmap, costmodel.Pipeline, costmodel.Infer, "0-2", "keeps no activations"},
		{costmodel.Devmap, costmodel.Pipeline, costmodel.Train, "3,16", "the last is 15"},
		{costmodel.Devmap, costmodel.Pipeline, costmodel.Train, "3,2", "is no list of blocks"},
		{costmodel.Devmap, costmodel.Pipeline, costmodel.Train, "0-15", ""},
		{costmodel.Devmap, costmodel.Pipeline, costmodel.Train, "auto", ""},
	} {
		resolved, err := estimate.Resolve(graph, costmodel.Workload{
			Mode: row.mode, Strategy: row.strategy, Runtime: row.runtime, OffloadActivations: row.blocks,
			World: 2, Batch: 4, MicroBatches: 4, Seq: 256, Precision: costmodel.BF16True,
		})
		if err == nil {
			_, err = estimate.Table(graph, resolved)
		}
		if err == nil != (row.why == "") || err != nil && !strings.Contains(err.Error(), row.why) {
			t.Errorf("%s, %s, %s, blocks %s: %v; want %q", row.runtime, row.strategy, row.mode, row.blocks, err, row.why)
		}
	}
}

// TestRefusedSchedules: torch runs no schedule with a split backward, and a V has two stages on each GPU.
func TestRefusedSchedules(t *testing.T) {
	graph := blocksModel(t, "llama-3.2-1b")
	for _, row := range []struct {
		runtime  string
		schedule costmodel.ScheduleKind
		virtual  int64
		field    string
		why      string
	}{
		{"torch", costmodel.ZBV, 0, "schedule", "not known"},
		{costmodel.Devmap, costmodel.ZBV, 3, "virtual_stages", "in the form of a V"},
		{costmodel.Devmap, costmodel.ZBV, 0, "", ""},
	} {
		_, err := estimate.Resolve(graph, costmodel.Workload{
			Mode: costmodel.Train, Strategy: costmodel.Pipeline, Runtime: row.runtime, Schedule: row.schedule, VirtualStages: row.virtual,
			World: 2, Batch: 4, MicroBatches: 4, Seq: 256, Precision: costmodel.BF16True,
		})
		var field *costmodel.FieldError
		if errors.As(err, &field) != (row.field != "") || field != nil && (field.Field != row.field || !strings.Contains(field.Error(), row.why)) {
			t.Errorf("%s on %s with %d virtual stages: %v; want a refusal of %q", row.schedule, row.runtime, row.virtual, err, row.field)
		}
	}
}
