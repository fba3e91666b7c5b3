package bind_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/fixtures"
)

// One micro-batch has a stack of gradients and saved activations, unless its backward has two halves
// or activations leave for the host.
func TestStackRegion(t *testing.T) {
	t.Parallel()
	graph := fixtures.Must(backendtest.Graph(backendtest.Families["llama"]))(t)
	for schedule, stacks := range map[costmodel.ScheduleKind]bool{costmodel.OneFOneB: true, costmodel.GPipe: true, costmodel.ZBH1: false} {
		for _, offloaded := range []string{"", costmodel.OffloadAll} {
			workload := backendtest.Workloads()["train"]
			workload.OffloadActivations = offloaded
			job := fixtures.Must(backendtest.Cut{Devices: 2, Schedule: schedule, MicroBatches: 1, Seed: 3}.Job(graph, workload))(t)
			bound := fixtures.Must(bind.New(job.Graph, job.Workload, job.Recipe, job.Program))(t)
			stack := slices.ContainsFunc(bound.Regions(0), func(region bind.Region) bool { return region.Name == "stack" })
			if want := stacks && offloaded == ""; stack != want {
				t.Errorf("%s with offloading %q: a stack is %v, want %v", schedule, offloaded, stack, want)
			}
		}
	}
}

// TestRegions: the regions of an arena follow each other within it. Buffers of host memory are in none.
func TestRegions(t *testing.T) {
	t.Parallel()
	jobs := fixtures.Must(backendtest.Forms("llama"))(t)
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		job := jobs[name]
		bound := fixtures.Must(bind.New(job.Graph, job.Workload, job.Recipe, job.Program))(t)
		for device := range job.Program.Devices {
			var end int64
			for _, region := range bound.Regions(device) {
				if region.First < end {
					t.Errorf("%s, device %d: %s begins at %d, before the end of the last one at %d", name, device, region.Name, region.First, end)
				}
				end = region.End
			}
			if arena := job.Program.Devices[device].Arena; end > arena {
				t.Errorf("%s, device %d: regions end at %d, the arena at %d", name, device, end, arena)
			}
		}
	}
}
