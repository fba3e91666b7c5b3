package accuracy_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// reservedRow is a GPU's reserved bytes, and the plan's range.
type reservedRow struct {
	kind, name     string
	device         int
	peak, reserved int64 // measured
	predicted      devicemap.Predicted
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

// poolRows are maps for two GPUs, planned for their pools, run by emit --for torch-check.
func poolRows(t *testing.T) (rows []row) {
	t.Helper()
	type line struct {
		measuredRun
		Case, Model string
		Workload    costmodel.Workload
		DeviceMap   map[string]any `json:"device_map"`
	}
	for _, read := range fixtures.Must(fixtures.Rows[line]("../../../fixtures/measured/reserved_maps_h200.jsonl"))(t) {
		config := fixtures.Must(os.ReadFile("../../../fixtures/models/" + read.Model + "/config.json"))(t)
		read.Workload.Precision = costmodel.BF16True
		rows = append(rows, row{source: read.Case, model: read.Model, config: string(config), mode: string(read.Workload.Mode), w: read.Workload, flat: flatten(t, read.DeviceMap), peak: read.Peak, reserved: read.Reserved})
	}
	return rows
}

// reservedRows are all rows with measured reserved memory.
func reservedRows(t *testing.T) (all []reservedRow) {
	t.Helper()
	const files = "../../../fixtures/measured/"
	placed := slices.Concat(measuredRows(t), loraRows(t, files+"more.json"), loraRows(t, files+"more2.json"), maskRows(t), checkedRows(t))
	for _, r := range imageRows(t) {
		placed = append(placed, r.row)
	}
	placed = append(placed, poolRows(t)...)
	for _, r := range placed {
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
		gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
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
		for _, r := range fixtures.Must(fixtures.Rows[trainerRow](files + file))(t) {
			row := read(t, r.Case)
			if r.Pool > 0 {
				single(r.Case, row.model, row.w, slices.Max(append(r.Steps, r.Prep)), r.Pool)
			}
		}
	}
	return all
}

// TestReservedRanges checks the printed ranges of reserved memory by kind of workload ("make
// accuracy"). Kinds without a bound here are only printed. Device maps miss runs of two steps if
// the third reserves more, processes after a training, autocast, eager attention and images.
func TestReservedRanges(t *testing.T) {
	bounds := map[string]struct{ inside, width float64 }{ // parts: at least, at most in the middle
		"map infer": {.9, .05}, "map generate": {.85, .05}, "map train": {.95, .05}, "map train ckpt": {.95, .05},
		"map train lora": {.85, .05}, "map train lora ckpt": {.75, .05}, "zero1 train": {.9, .055}, "zero2 train": {.95, .055},
	}
	kinds := make(map[string][]reservedRow)
	for _, r := range reservedRows(t) {
		kinds[r.kind] = append(kinds[r.kind], r)
	}
	var out strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		in := 0
		var widths []float64
		for _, r := range kinds[kind] {
			note := ""
			if off := r.off(); off == 0 {
				in++
			} else {
				note = fmt.Sprintf("out by %+.2f %%", 100*off)
			}
			widths = append(widths, r.width())
			peak := r.predicted.PeakAllocatedBytes
			fmt.Fprintf(&out, "%-28s %-64s %d %8.3f %8.3f %8.3f – %8.3f %5.1f %% wide %s\n", kind, r.name, r.device, gib(r.peak), gib(r.reserved), gib(peak+r.predicted.SlackBytes[0]), gib(peak+r.predicted.SlackBytes[1]), 100*r.width(), note)
		}
		slices.Sort(widths)
		width, inside := widths[len(widths)/2], float64(in)/float64(len(widths))
		fmt.Fprintf(&out, "%-28s %d of %d within the range, of %.1f %% of the peak in the middle, at most %.1f %%\n", kind, in, len(widths), 100*width, 100*widths[len(widths)-1])
		if bound, ok := bounds[kind]; ok && (inside < bound.inside || width > bound.width) {
			t.Errorf("%s: %d of %d GPUs within a range of %.3f of the peak in the middle", kind, in, len(widths), width)
		}
	}
	t.Log("\nkind, row, GPU, allocated, reserved, range (GiB)\n" + out.String())
}
