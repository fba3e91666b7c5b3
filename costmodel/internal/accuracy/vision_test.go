package accuracy_test

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// imageConfigs are the models of measured/how/measure_vlimg.py that peerConfigs lacks.
var imageConfigs = map[string]string{
	"internvl-small": `{"model_type": "internvl",
		"text_config": {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
			"num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 92553},
		"vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
			"image_size": [448, 448], "patch_size": [14, 14]}}`,
	"internvl2.5-26b": `{"model_type": "internvl",
		"text_config": {"model_type": "llama", "hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 48,
			"num_attention_heads": 48, "num_key_value_heads": 8, "vocab_size": 92553},
		"vision_config": {"hidden_size": 3200, "intermediate_size": 12800, "num_hidden_layers": 45, "num_attention_heads": 25,
			"image_size": [448, 448], "patch_size": [14, 14], "use_qk_norm": true, "norm_type": "rms_norm"}}`,
}

// imageRow is a row of vlimg.json.
type imageRow struct {
	row
	images int64
}

// imageRows ran under the maps that Accelerate made, all of a model in one process, training first.
func imageRows(t *testing.T) []imageRow {
	t.Helper()
	var runs []struct {
		measuredRun
		Model     string
		Images    int64
		Px        int64
		DeviceMap map[string]any `json:"device_map"`
	}
	read(t, "../../../fixtures/measured/vlimg.json", &runs)
	rows := make([]imageRow, 0, len(runs))
	for _, r := range runs {
		one := imageRow{row: row{
			source: "vlimg", model: r.Model, mode: r.Mode, w: workload(r.Mode, r.Batch, r.Seq),
			flat: flatten(t, r.DeviceMap), peak: r.Peak, reserved: r.Reserved, config: imageConfigs[r.Model],
		}, images: r.Images}
		one.w.Images = r.Images
		if strings.HasPrefix(r.Model, "qwen") {
			one.w.ImageSize = r.Px
		}
		if one.infers() {
			one.extra = autogradWorkspace
		}
		rows = append(rows, one)
	}
	return rows
}

// leftover is GPU d's memory of earlier runs in the process: the workspaces of both threads, in
// rows without images on a GPU with only the tower.
func (r *imageRow) leftover(d int) int64 {
	if !r.infers() && r.images == 0 && r.model == "internvl-small" && d == 0 {
		return 2 * autogradWorkspace
	}
	return r.extra
}

// TestImages predicts every GPU's allocated peak of the runs with images. Known differences:
//   - Qwen2.5-VL on GPU 0: 5 to 8 MiB, as weights of 3 and 8 MiB leave up to 1 MiB of the
//     allocator's blocks of 20 MiB unsplit; on other GPUs up to 1 MiB for each optimizer state of a
//     weight of 43 MiB.
//   - InternVL-26B on GPU 0: its logits, which the caller holds through backward.
func TestImages(t *testing.T) {
	const worst = 1 // percent
	var table strings.Builder
	for _, r := range imageRows(t) {
		devices := predictRow(t, &r.row)
		for d, measured := range r.peak {
			got := devices[d].Predicted
			total := got.PeakAllocatedBytes
			if total > 0 {
				total += r.leftover(d)
			}
			percent := 100 * (float64(total)/float64(measured) - 1)
			name := fmt.Sprintf("%s/%s, %d images, GPU %d", r.model, r.mode, r.images, d)
			fmt.Fprintf(&table, "%-48s %4d px %9.3f %9.3f GiB %+7.3f %% %+8.2f MiB  %s\n", name, r.w.ImageSize,
				gib(total), gib(measured), percent, float64(total-measured)/(1<<20), got.PeakAt)
			if math.Abs(percent) > worst {
				t.Errorf("%s: predicted %d B, measured %d B, off by %+.2f %%; the bound is %d %%", name, total, measured, percent, worst)
			}
		}
	}
	t.Log("\n" + table.String())
}

// TestTowersKeep checks what towers keep for backward against what autograd kept of them in
// Transformers' code (measured/how/trace_towers.py: the features and the pixels left out).
func TestTowersKeep(t *testing.T) {
	const tolerance = 1e-4 // window indexes, masks
	for _, c := range []struct {
		model        string
		side, images int64
		want         int64
	}{
		{"qwen2.5-vl-3b", 448, 1, 2174055424},
		{"qwen2.5-vl-3b", 896, 1, 8696206336},
		{"internvl-small", 0, 1, 915200000},
		{"internvl-small", 0, 4, 3660541952},
	} {
		g, err := hf.FromConfig("config.json", []byte(cmp.Or(imageConfigs[c.model], peerConfigs[c.model])))
		if err != nil {
			t.Fatal(err)
		}
		w := workload("train", 1, 2048)
		w.Images, w.ImageSize = c.images, c.side
		if w, err = estimate.Resolve(g, w); err != nil {
			t.Fatal(err)
		}
		table, err := estimate.Table(g, w)
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		for u := range table.Units {
			for k, i := range g.Units[u].Exec {
				_, pixels := g.Layers[i].Op.(modelgraph.Conv)
				if g.Layers[i].Stream.Kind == modelgraph.Image && !pixels {
					got += table.Units[u].Layers[k].Saved
				}
			}
		}
		if off := float64(got)/float64(c.want) - 1; math.Abs(off) > tolerance {
			t.Errorf("%s, %d images of %d px: %d B kept, autograd keeps %d (%+.3f %%)", c.model, c.images, c.side, got, c.want, 100*off)
		}
	}
}
