package accuracy_test

import (
	"os"
	"testing"
)

// TestCheckedAccuracy predicts maps for two GPUs; runs of emit --for torch-check were predicted
// before they were measured ("make accuracy"). States of phi-4's 75 MiB weights pay 1 MiB each if
// no cached block fits (allocator.Rounding), as Qwen2.5-3B's do.
func TestCheckedAccuracy(t *testing.T) {
	const worst, middle = .2, .05 // percent
	table := newPeaks()
	for _, r := range checkedRows(t) {
		table.add(t, &r, worst)
	}
	table.end(t, "checked", middle)
}

func checkedRows(t *testing.T) (rows []row) {
	t.Helper()
	var f struct {
		Runs []struct {
			measuredRun
			Model     string
			DeviceMap map[string]any `json:"device_map"`
		}
	}
	read(t, "../../../fixtures/measured/check_maps.json", &f)
	for _, run := range f.Runs {
		config, err := os.ReadFile("../../../fixtures/models/" + run.Model + "/config.json")
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row{source: "checked", model: run.Model, config: string(config), mode: run.Mode, w: workload(run.Mode, run.Batch, run.Seq), flat: flatten(t, run.DeviceMap), peak: run.Peak, reserved: run.Reserved})
	}
	return rows
}
