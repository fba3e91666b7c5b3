package accuracy_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestCheckedAccuracy predicts maps for two GPUs whose runs were predicted first
// and measured by the program of emit --for torch-check ("make accuracy"). What is
// left: states of phi-4's 75 MiB weights pay 1 MiB each where no cached block fits
// (allocator.Rounding), as Qwen2.5-3B's do.
func TestCheckedAccuracy(t *testing.T) {
	const worst = .2 // percent
	var f struct {
		Runs []struct {
			measuredRun
			Model     string
			DeviceMap map[string]any `json:"device_map"`
		}
	}
	read(t, "../../../fixtures/measured/check_maps.json", &f)
	var off []float64
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-48s GPU  predicted   measured    error  MiB off  at\n", "row (GiB)")
	for _, run := range f.Runs {
		config, err := os.ReadFile("../../../fixtures/models/" + run.Model + "/config.json")
		if err != nil {
			t.Fatal(err)
		}
		r := row{source: "checked", model: run.Model, config: string(config), mode: run.Mode, w: workload(run.Mode, run.Batch, run.Seq), flat: flatten(t, run.DeviceMap), peak: run.Peak}
		devices := predictRow(t, &r)
		for d, measured := range r.peak {
			got := devices[d].Predicted
			percent := 100 * (float64(got.PeakAllocatedBytes)/float64(measured) - 1)
			fmt.Fprintf(&table, "%-48s %3d %10.3f %10.3f %+7.3f%% %+8.2f  %s\n", r.name(), d,
				gib(got.PeakAllocatedBytes), gib(measured), percent, float64(got.PeakAllocatedBytes-measured)/(1<<20), got.PeakAt)
			off = append(off, math.Abs(percent))
			if math.Abs(percent) > worst {
				t.Errorf("%s, GPU %d: predicted %d B, measured %d B, off by %+.3f %%; the bound is %g %%", r.name(), d, got.PeakAllocatedBytes, measured, percent, worst)
			}
		}
	}
	summary(t, &table, "checked", off)
	t.Log(table.String())
}
