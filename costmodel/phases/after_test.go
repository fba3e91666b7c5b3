package phases

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// TestAfterMeasured checks seeds.json's row fsdp_unload: 64 matrices of 8192² over four GPUs.
func TestAfterMeasured(t *testing.T) {
	data := fixtures.Must(os.ReadFile("../../fixtures/measured/seeds.json"))(t)
	var rows struct {
		Unload string `json:"fsdp_unload"`
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	figures := map[string][3]int64{} // used, allocated, reserved, in MiB
	for _, line := range strings.Split(rows.Unload, "\n") {
		name, rest, _ := strings.Cut(line, " [")
		var used, skip, allocated, reserved int64
		if count, _ := fmt.Sscanf(rest, "%d, %d, %d, %d] alloc MiB %d reserved %d", &used, &skip, &skip, &skip, &allocated, &reserved); count < 6 {
			if count, err := fmt.Sscanf(rest, "%d, %d, %d, %d] alloc %d", &used, &skip, &skip, &skip, &allocated); count < 5 {
				t.Fatalf("%q: %v", line, err)
			}
		}
		figures[name] = [3]int64{used, allocated, reserved}
	}
	collected, emptied, destroyed := figures["gc"], figures["empty_cache"], figures["destroy_process_group"]
	if collected[2] != figures["after step"][2] || collected[0]-emptied[0] != collected[2]-emptied[2] {
		t.Errorf("deleting gives nothing back, emptying what the pool has too much: %v", figures)
	}
	if got := (emptied[0] - destroyed[0]) << 20; got != processGroup || destroyed[1] != emptied[1] {
		t.Errorf("the process group's: %d, measured %d; %v", processGroup, got, figures)
	}
	graph := new(modelgraph.Graph)
	for range 64 {
		weight := fixtures.Must(modelgraph.NewTensor("weight", modelgraph.BF16, 8192, 8192))(t)
		graph.Layers = append(graph.Layers, modelgraph.Layer{Params: []modelgraph.Tensor{weight}})
	}
	component := &diffusers.Component{Graph: graph}
	run := &residency{deployment{all: []*diffusers.Component{component}, denoiser: component}}
	if got := run.sharded(4) >> 20; got != figures["sharded"][1] {
		t.Errorf("shards: %d MiB, measured %d", got, figures["sharded"][1])
	}
}

// TestAfter checks the allocated bytes after a measured Flux pipeline of few blocks, called part by
// part, so that its outputs (1,024 bytes) stayed.
func TestAfter(t *testing.T) {
	pipeline := folder(t, fluxSmall())
	for mode, want := range map[string]int64{"": 5180637696, "model": 34603008, "sequential": 34604032 - 1024, "group": 34603008} {
		plan := fixtures.Must(of(pipeline, Workload{Offload: mode}, h200))(t)
		run, emptied := plan.After[0], plan.After[2]
		if off := float64(run.AllocatedBytes[0]-want) / float64(want); off > 0.001 || off < -0.001 {
			t.Errorf("%q: %d stay, measured %d", mode, run.AllocatedBytes[0], want)
		}
		if run.PoolBytes[0] != plan.peak() || emptied.AllocatedBytes[0] != 33<<20 || emptied.PoolBytes[0] != 34<<20 {
			t.Errorf("%q: %+v", mode, plan.After)
		}
		if emptied.FreeBytes[0]-run.FreeBytes[0] != run.AllocatedBytes[0]-33<<20 {
			t.Errorf("%q: room %v then %v", mode, run.FreeBytes, emptied.FreeBytes)
		}
	}
}

// TestNext: the steps and the figures are said.
func TestNext(t *testing.T) {
	for words, work := range map[string]Workload{
		"33.0 MiB of cuBLAS workspaces":    {},
		"of sharded components":            {Ulysses: 2, FullyShardDegree: 2},
		"get_cache_manager().cache.clear(": {PipeFusion: 2},
		"484.0 MiB a GPU came back":        {Ulysses: 2},
	} {
		plan := fixtures.Must(of(folder(t, fluxSmall()), work, h200))(t)
		if said := strings.Join(plan.Warnings, "\n"); !strings.Contains(said, words) {
			t.Errorf("%q is not in\n%s", words, said)
		}
		if steps := len(plan.After); steps != 3+min(1, int(work.Ulysses+work.PipeFusion))+int(work.PipeFusion/2) {
			t.Errorf("%+v: %d steps", work, steps)
		}
	}
}
