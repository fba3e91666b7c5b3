package bind_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/fixtures"
)

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
