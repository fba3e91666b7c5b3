package phases

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
)

// beyondPeak is a run's reserved bytes beyond its largest phase, as a part of the phase without
// weights. One GPU of several decodes.
func beyondPeak(plan *Plan, rank int, measured map[string]int64, reserved int64) float64 {
	var most costmodel.Memory
	for i := range plan.Phases {
		memory := plan.Phases[i].Memory[rank]
		if _, ran := measured[plan.Phases[i].Name]; ran && memory.Total() > most.Total() {
			most = memory
		}
	}
	return float64(reserved-most.Total()) / float64(most.Total()-most.Params)
}

// TestPoolMeasured: the reserved bytes beyond the peak of every measured pipeline are in the range
// of its way to offload, and the ranges are no wider than that.
func TestPoolMeasured(t *testing.T) {
	ends := map[string][2]float64{}
	note := func(name, offload string, part float64) {
		least := pools[offload]
		if part < least[0] || part > least[1] {
			t.Errorf("%s, offload %q: %.3f beyond the peak, not in %v", name, offload, part, least)
		}
		found, known := ends[offload]
		if !known {
			found = [2]float64{part, part}
		}
		ends[offload] = [2]float64{min(found[0], part), max(found[1], part)}
	}
	type row struct {
		Pipeline, What  string
		Batch, Reserved int64
		Sizes           struct {
			Height, Width int64
			Frames        int64 `json:"num_frames"`
		}
		Phases map[string]int64
	}
	for _, row := range fixtures.Must(fixtures.Rows[row]("../../fixtures/measured/diffusion_pipes_h200.jsonl"))(t) {
		mode, variant, _ := strings.Cut(strings.TrimPrefix(row.What, "none"), " ")
		files := pipesOf()[row.Pipeline]
		if files == nil || row.Reserved == 0 || mode == "group" && variant != "" {
			continue
		}
		plan, err := of(folder(t, files), Workload{
			Height: row.Sizes.Height, Width: row.Sizes.Width, Frames: row.Sizes.Frames, Batch: row.Batch, Offload: mode, VAEPrecision: "bf16",
			VAETiling: strings.Contains(row.What, "tiled"), VAESlicing: strings.Contains(row.What, "sliced"),
		}, h200)
		if err != nil {
			t.Fatal(err)
		}
		note(row.Pipeline+" "+row.What, mode, beyondPeak(plan, 0, row.Phases, row.Reserved))
	}
	file := fixtures.Must(os.Open("../../fixtures/measured/xdit_h200.jsonl"))(t)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row xditRow
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		if row.Run != nil && row.Run["reserved"] > 0 {
			note("xDiT "+row.Row, "", beyondPeak(row.planned(t), row.Rank, row.Run, row.Run["reserved"]))
		}
	}
	for offload, planned := range pools {
		found := ends[offload]
		t.Logf("offload %q: %.3f to %.3f", offload, found[0], found[1])
		const rounded = 0.05
		if found[0]-planned[0] > rounded || planned[1]-found[1] > rounded {
			t.Errorf("offload %q: %v was measured, and the range is %v", offload, found, planned)
		}
	}
}
