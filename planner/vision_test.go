package planner_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// imageConfigs are the models of measured/how/measure_vlimg.py that
// peerConfigs lacks.
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
	images, side int64
}

// imageRows ran under the maps that Accelerate made, all of a model in one
// process, training first.
func imageRows(t *testing.T) []imageRow {
	t.Helper()
	var runs []struct {
		measuredRun
		Model     string
		Images    int64
		Px        int64
		DeviceMap map[string]any `json:"device_map"`
	}
	read(t, "../fixtures/measured/vlimg.json", &runs)
	rows := make([]imageRow, 0, len(runs))
	for _, r := range runs {
		one := imageRow{row: row{
			source: "vlimg", model: r.Model, mode: r.Mode, w: workload(r.Mode, r.Batch, r.Seq),
			flat: flatten(t, r.DeviceMap), peak: r.Peak, config: imageConfigs[r.Model],
		}, images: r.Images}
		one.w.Images = r.Images
		if strings.HasPrefix(r.Model, "qwen") {
			one.side = r.Px
			one.w.ImageSize = r.Px
		}
		if one.infers() {
			one.extra = autogradWorkspace
		}
		rows = append(rows, one)
	}
	return rows
}

// TestImages predicts every GPU's allocated peak of the runs with images.
func TestImages(t *testing.T) {
	// Percent. The rows of a model ran in one process: those after the first
	// hold up to 66 MiB of the ones before, 7 % of a GPU that has a tower at
	// rest and little else; and 4.5 % of the 26B tower's training peak is not
	// explained.
	worst := map[string]float64{"qwen2.5-vl-3b": 2, "internvl-small": 7.2, "internvl2.5-26b": 4.6}
	var table strings.Builder
	for _, r := range imageRows(t) {
		devices := predictRow(t, &r.row)
		for d, measured := range r.peak {
			got := devices[d].Predicted
			total := got.PeakAllocatedBytes
			if total > 0 {
				total += r.extra
			}
			percent := 100 * (float64(total)/float64(measured) - 1)
			fmt.Fprintf(&table, "%-40s %d × %4d px, GPU %d %9.3f %9.3f GiB %+7.3f %% %+8.2f MiB  %s\n", r.name(), r.images, r.side, d,
				costmodel.Bytes(total).GiB(), costmodel.Bytes(measured).GiB(), percent, float64(total-measured)/(1<<20), got.PeakAt)
			if math.Abs(percent) > worst[r.model] {
				t.Errorf("%s, GPU %d: predicted %d B, measured %d B, off by %+.2f %%; the bound is %g %%", r.name(), d, total, measured, percent, worst[r.model])
			}
		}
	}
	t.Log("\n" + table.String())
}
