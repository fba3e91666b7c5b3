package devicemap_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// arenaTable returns the costs of [small] under devmap's own engine. The embedding has 10 blocks of
// 256 B, and each of four blocks keeps an input of 4 and saves 6. The norm passes on only its
// message, and the head is tied to the embedding.
func arenaTable(graph *modelgraph.Graph, workload costmodel.Workload) *costmodel.Table {
	const block = costmodel.RegionAlign
	workload.Runtime, workload.Mode, workload.Batch, workload.Seq = costmodel.Devmap, costmodel.Train, workload.MicroBatches, 4
	table := &costmodel.Table{Workload: workload, Workspaces: 1, BodySlack: [2]float64{.1, .2}, HeadSlack: [2]float64{.3, .4}}
	for i := range graph.Units {
		unit := costmodel.Unit{Name: graph.Units[i].Name, Params: 10 * block, Products: true}
		regions := &unit.Regions
		*regions = costmodel.Regions{
			Weights: 10 * block, Grads: 10 * block, State: 20 * block, Input: 4 * block, Saved: 6 * block,
			Forward: 7 * block, Backward: 9 * block, Output: 4 * block, Tensors: 1,
		}
		switch {
		case i == 0:
			regions.Input, regions.Feed = 0, block
		case i == len(graph.Units)-1:
			regions.Weights, regions.State, regions.Tensors = 0, 0, 0
			regions.Tied = []costmodel.Tie{{Owner: 0, Tensor: "m.embed.weight", Weights: 10 * block, State: 20 * block, Grads: 10 * block}}
			regions.Output, regions.Result = 0, 2*block
		}
		table.Units = append(table.Units, unit)
	}
	return table
}

// TestArenaPlan computes by hand what devices store. Under a device map with three micro-batches in
// turn, device 0 has the embedding and the head, and device 1 the rest.
func TestArenaPlan(t *testing.T) {
	graph := small(t)
	topo := &costmodel.Topology{Devices: make([]costmodel.Device, 2)}
	for device := range topo.Devices {
		topo.Devices[device] = costmodel.Device{CapacityBytes: 1 << 20, WorkspaceBytes: 300, Slack: [2]float64{.5, .6}}
	}
	const sums = 2*1 + 1 // norms, their slot, and their sum
	for _, c := range []struct {
		name     string
		workload costmodel.Workload
		place    devicemap.Map
		want     []int64 // blocks of 256 B
	}{
		{
			"a device visited twice",
			costmodel.Workload{Strategy: costmodel.DeviceMap, MicroBatches: 3},
			devicemap.Map{0, 1, 1, 1, 1, 1, 0},
			[]int64{
				// workspace, weights, moments, ids, gradients, slots of the embedding's gradient
				// and the head's input, messages, losses, saved, scratch
				2 + 10 + 20 + 1 + 2*10 + 2*4 + 2*4 + 4 + 4 + 2 + sums + 6 + 10 + 9,
				// the gradient that is passed back, and of five units with 10 saved
				2 + 5*(10+20+10) + 2*4 + 2*4 + 4 + 4 + 4 + sums + 5*10 + 9,
			},
		}, {
			"one micro-batch: gradients grow into what was saved",
			costmodel.Workload{Strategy: costmodel.DeviceMap, MicroBatches: 1},
			devicemap.Map{0, 1, 1, 1, 1, 1, 0},
			[]int64{
				2 + 10 + 20 + 1 + 4 + 4 + 4 + 4 + 2 + sums + (16 + 9 + 10),
				2 + 5*(10+20) + 4 + 4 + 4 + 4 + 4 + sums + (50 + 9 + 10),
			},
		}, {
			"a pipeline: of a tied weight a copy on each, and a slot for the other's gradient",
			costmodel.Workload{Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, MicroBatches: 3},
			devicemap.Map{0, 0, 0, 0, 1, 1, 1},
			[]int64{
				2 + 4*(10+20+10) + 1 + 2*4 + 10 + 4 + 4 + sums + 2*(6+3*10) + 9,
				2 + 2*(10+20+10) + (10 + 20 + 10) + 2*4 + 10 + 4 + 4 + 2 + sums + 3*10 + 9,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := arenaTable(graph, c.workload)
			report := devicemap.Check(graph, table, topo, c.place.Flatten(graph), nil)
			if len(report.Faults) > 0 {
				t.Error(report.Faults)
			}
			for device, got := range report.Devices {
				predicted := &got.Predicted
				if predicted.PeakAllocatedBytes != 256*c.want[device] || predicted.SlackBytes != [2]int64{} {
					t.Errorf("device %d: %d blocks, want %d; %+v", device, predicted.PeakAllocatedBytes/256, c.want[device], *predicted)
				}
				sum := predicted.ParamsBytes + predicted.GradsBytes + predicted.OptimizerStateBytes + predicted.ActivationsBytes + predicted.KVCacheBytes + predicted.WorkspaceBytes + predicted.CommBuffersBytes
				if sum != predicted.PeakAllocatedBytes {
					t.Errorf("device %d: the parts add up to %d of %d", device, sum, predicted.PeakAllocatedBytes)
				}
			}
		})
	}
}

// TestArenaMaps: maps that devmap's engine runs, and maps that it does not.
func TestArenaMaps(t *testing.T) {
	graph := small(t)
	topo := &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{{CapacityBytes: 1 << 20}}, 3)}
	for _, c := range []struct {
		name     string
		workload costmodel.Workload
		place    devicemap.Map
		fault    string
	}{
		{"a unit without parameters is a stage", costmodel.Workload{Strategy: costmodel.Pipeline, Schedule: costmodel.GPipe, MicroBatches: 2}, devicemap.Map{0, 0, 0, 1, 2, 2, 2}, ""},
		{"fewer micro-batches than stages", costmodel.Workload{Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, MicroBatches: 1}, devicemap.Map{0, 0, 0, 1, 2, 2, 2}, ""},
		{"ties apart", costmodel.Workload{Strategy: costmodel.DeviceMap, MicroBatches: 1}, devicemap.Map{0, 0, 0, 0, 0, 1, 1}, devicemap.TiesApart},
		{"on the host", costmodel.Workload{Strategy: costmodel.DeviceMap, MicroBatches: 1}, devicemap.Map{0, 0, devicemap.CPU, 0, 0, 0, 0}, devicemap.UnknownDevice},
		{"a second run", costmodel.Workload{Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, MicroBatches: 4}, devicemap.Map{0, 0, 1, 1, 0, 0, 2}, "split-unit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := arenaTable(graph, c.workload)
			table.Units[3].Params, table.Units[3].Regions = 0, costmodel.Regions{Passes: true}
			report := devicemap.Check(graph, table, topo, c.place.Flatten(graph), nil)
			var kinds []string
			for _, fault := range report.Faults {
				kinds = append(kinds, fault.Kind)
			}
			if got := strings.Join(slices.Compact(kinds), " "); got != c.fault || len(report.Warnings) > 0 {
				t.Errorf("%q (%v, %v), want %q", got, report.Faults, report.Warnings, c.fault)
			}
		})
	}
}
