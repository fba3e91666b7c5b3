package devicemap_test

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// offloaded is a plan whose activations wait in host memory.
func offloaded(tb testing.TB) document {
	tb.Helper()
	made := documentOf(tb, planOf(tb, devicemap.Map{0, 0, 0, 1, 1, 1, 1}))
	made.with(map[string]any{"mode": "train", "strategy": "pipeline", "runtime": "devmap", "schedule": "1f1b", "batch": 2, "micro_batches": 2, "optimizer": "adamw", "recompute": "none", "offload_activations": "0-1"})
	for _, device := range []string{"0", "1"} {
		made.set("topology/devices/"+device+"/pinned_bytes_per_second", 5e10)
		made.set("devices/"+device+"/predicted/host_bytes", 1000)
	}
	return made
}

// TestHostFaults: bytes in host memory agree with the blocks that leave for it, with its rates and
// with its size.
func TestHostFaults(t *testing.T) {
	refuses(t, func() document { return offloaded(t) }, []edit{
		{"devices/0/predicted/host_bytes", -1, `devices[0].predicted.host_bytes: -1 bytes: want 0 to `},
		{"devices/1/predicted/host_bytes", 1 << 62, `devices[1].predicted.host_bytes: 4611686018427387904 bytes: want 0 to `},
		{"devices/1/predicted/host_bytes", nil, ""}, // no block of the device leaves
		{"workload/offload_activations", nil, `devices[0].predicted.host_bytes: 1000, and the workload has no offload_activations`},
		{"workload/offload_activations", "", `devices[0].predicted.host_bytes: 1000, and the workload has no offload_activations`},
		{"workload/offload_activations", "none", `workload.offload_activations: "none" is no set of blocks`},
		{"workload/offload_activations", "auto", `workload.offload_activations: "auto" is no set of blocks`},
		{"workload/offload_activations", "full", ""},
		{"workload/offload_activations", "0,99", `workload.offload_activations: "0,99" has a block that the `},
		{"workload/runtime", "torch", `workload.offload_activations: "0-1", and only runtime "devmap" moves activations`},
		{"topology/devices/1/pinned_bytes_per_second", nil, `topology.devices[1].pinned_bytes_per_second: missing, and devices[1].predicted.host_bytes is 1000`},
		{"topology/host_memory_bytes", 2000, ""},
		{"topology/host_memory_bytes", 1999, `topology.host_memory_bytes: 1999, and activations of "devices" take 2000 of the host's memory`},
	})
}

// TestHostFits: a check reports activations that exceed the host's memory.
func TestHostFits(t *testing.T) {
	t.Parallel()
	graph := small(t)
	table, topo := load(t, graph, 1000, 2)
	table.Workload = costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Runtime: costmodel.Devmap, Schedule: costmodel.OneFOneB, MicroBatches: 2, OffloadActivations: costmodel.OffloadAll}
	for i := range table.Units {
		table.Units[i].Regions.Saved, table.Units[i].Regions.Moved = 100, 200
	}
	flat := devicemap.Map{0, 0, 0, 1, 1, 1, 1}.Flatten(graph)
	need, _ := devicemap.HostMemory(devicemap.Check(graph, table, topo, flat, nil).Devices, topo)
	if need == 0 {
		t.Fatal("nothing is offloaded")
	}
	for short, want := range []string{"", "activations take"} {
		topo.HostMemoryBytes = need - int64(short)
		var found string
		for _, fault := range devicemap.Check(graph, table, topo, flat, nil).Faults {
			if fault.Module == "the host" {
				found = fault.String()
			}
		}
		if (found != "") != (want != "") || !strings.Contains(found, want) {
			t.Errorf("%d bytes short: %q", short, found)
		}
	}
}
