package accuracy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// reservedRow is what the pool of a GPU reserved, and the plan's range.
type reservedRow struct {
	kind, name     string
	device         int
	peak, reserved int64 // measured
	predicted      devicemap.Predicted
	followed       bool
}

func (r *reservedRow) width() float64 {
	return float64(r.predicted.SlackBytes[1]-r.predicted.SlackBytes[0]) / float64(r.predicted.PeakAllocatedBytes)
}

// off is by how much the pool is above (or below) the range, as a part of the peak.
func (r *reservedRow) off() float64 {
	low, high := r.predicted.PeakAllocatedBytes+r.predicted.SlackBytes[0], r.predicted.PeakAllocatedBytes+r.predicted.SlackBytes[1]
	switch {
	case r.reserved < low:
		return float64(r.reserved-low) / float64(r.peak)
	case r.reserved > high:
		return float64(r.reserved-high) / float64(r.peak)
	}
	return 0
}

// kindOf is the kind of a workload.
func kindOf(w *costmodel.Workload) string {
	kind := string(w.Strategy)
	switch {
	case w.Strategy == costmodel.DeviceMap || w.Strategy == "":
		kind = "map"
	case w.Strategy.Traits().Staged:
		kind = "pipeline"
	}
	switch {
	case w.Mode == costmodel.Infer && w.NewTokens > 0:
		return kind + " generate"
	case w.Mode == costmodel.Infer:
		return kind + " infer"
	}
	kind += " train"
	if w.LoRARank > 0 {
		kind += " lora"
	}
	if w.Recompute == costmodel.RecomputeFull {
		kind += " ckpt"
	}
	return kind
}

// poolRows are maps for two GPUs that were planned for their pools, run by the program of
// emit --for torch-check.
func poolRows(t *testing.T) (rows []row) {
	t.Helper()
	text, err := os.ReadFile("../../../fixtures/measured/reserved_maps_h200.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var read struct {
			measuredRun
			Case, Model string
			Workload    costmodel.Workload
			DeviceMap   map[string]any `json:"device_map"`
		}
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		config, err := os.ReadFile("../../../fixtures/models/" + read.Model + "/config.json")
		if err != nil {
			t.Fatal(err)
		}
		read.Workload.Precision = costmodel.BF16True
		rows = append(rows, row{source: read.Case, model: read.Model, config: string(config), mode: string(read.Workload.Mode), w: read.Workload, flat: flatten(t, read.DeviceMap), peak: read.Peak, reserved: read.Reserved})
	}
	return rows
}

// reservedRows are all rows whose reserved memory was measured.
func reservedRows(t *testing.T) (all []reservedRow) {
	t.Helper()
	const files = "../../../fixtures/measured/"
	maps := slices.Concat(measuredRows(t), loraRows(t, files+"more.json"), loraRows(t, files+"more2.json"), maskRows(t), checkedRows(t))
	for _, r := range imageRows(t) {
		maps = append(maps, r.row)
	}
	maps = append(maps, poolRows(t)...)
	for _, r := range maps {
		if r.name() == "peer/qwen2.5-32b/train/1x2048" { // on a model whose checkpoints a run before had switched on
			r.w.Recompute = costmodel.RecomputeFull
		}
		devices := predictRow(t, &r)
		for d, reserved := range r.reserved {
			if reserved == 0 || r.peak[d] < 1<<30 {
				continue
			}
			all = append(all, reservedRow{kind: kindOf(&r.w), name: r.name(), device: d, peak: r.peak[d], reserved: reserved, predicted: devices[d].Predicted})
		}
	}
	single := func(name, model string, w costmodel.Workload, peak, reserved int64) {
		if w.Strategy.Traits().Staged || strings.Contains(name, "noreshard") {
			return
		}
		_, table := costsOf(t, distConfig(t, model), w)
		gpu, err := catalogue.Find("h200-141gb")
		if err != nil {
			t.Fatal(err)
		}
		device := gpu.Device(w.Mode)
		got := devicemap.Predict(table, &costmodel.Topology{Devices: []costmodel.Device{device}}, nil)[0].Predicted
		kind := kindOf(&w)
		if w.Preset != "" {
			kind += " preset"
		}
		all = append(all, reservedRow{kind: kind, name: name, peak: peak, reserved: reserved, predicted: got})
	}
	fake := slices.Concat(fakeRows(t, files+"fake_group_h200.jsonl"), fakeRows(t, files+"fake_group_lora.jsonl"), fakeRows(t, files+"fake_group_zero.jsonl"), fakeRows(t, files+"fake_group_reserved.jsonl"))
	for i := range fake {
		single(fake[i].name, fake[i].model, fake[i].w, fake[i].ranks[0].Peak, fake[i].ranks[0].Reserved)
	}
	for _, r := range distRows(t) {
		single(r.name, r.model, r.w, r.ranks[0].Peak, r.ranks[0].Reserved)
	}
	for file, read := range map[string]func(*testing.T, string) trainerRow{
		"trainer_h200.jsonl": newTrainerRow, "axolotl_h200.jsonl": newAxolotlRow, "presets_h200.jsonl": newPresetRow,
		"trainer_fsdp_h200.jsonl": newShardedRow, "float8_h200.jsonl": newTrainerRow, "emitted_h200.jsonl": newEmittedRow, "native_h200.jsonl": newNativeRow,
	} {
		f, err := os.Open(files + file)
		if err != nil {
			t.Fatal(err)
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			var r trainerRow
			if err := json.Unmarshal(s.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			row := read(t, r.Case)
			if r.Pool > 0 {
				single(r.Case, row.model, row.w, slices.Max(append(r.Steps, r.Prep)), r.Pool)
			}
		}
		f.Close()
	}
	return all
}

// TestReservedKinds prints all rows by kind.
func TestReservedKinds(t *testing.T) {
	rows := reservedRows(t)
	kinds := map[string][]reservedRow{}
	for _, r := range rows {
		kinds[r.kind] = append(kinds[r.kind], r)
	}
	names := make([]string, 0, len(kinds))
	for k := range kinds {
		names = append(names, k)
	}
	slices.Sort(names)
	var out strings.Builder
	inside, widths := 0, []float64{}
	for _, k := range names {
		in := 0
		var w []float64
		for _, r := range kinds[k] {
			note := ""
			if r.off() == 0 {
				in++
			} else {
				note = fmt.Sprintf("out %+.2f %%", 100*r.off())
			}
			w = append(w, r.width())
			low, high := r.predicted.PeakAllocatedBytes+r.predicted.SlackBytes[0], r.predicted.PeakAllocatedBytes+r.predicted.SlackBytes[1]
			fmt.Fprintf(&out, "%-24s %-64s %d %8.3f %8.3f of %8.3f %8.3f mid %+7.2f%% width %5.1f %s\n", k, r.name, r.device, gib(r.peak), gib(r.reserved), gib(low), gib(high), 100*float64(r.reserved-(low+high)/2)/float64(r.peak), 100*r.width(), note)
		}
		inside += in
		widths = append(widths, w...)
		slices.Sort(w)
		fmt.Fprintf(&out, "== %-28s %3d rows, %3d inside, width median %.1f worst %.1f %%\n", k, len(w), in, 100*w[len(w)/2], 100*w[len(w)-1])
	}
	slices.Sort(widths)
	fmt.Fprintf(&out, "== ALL %d rows, %d inside (%.1f %%), width median %.1f %%\n", len(rows), inside, 100*float64(inside)/float64(len(rows)), 100*widths[len(widths)/2])
	t.Log("\n" + out.String())
}
