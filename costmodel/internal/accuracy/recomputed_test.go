package accuracy_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestRecomputedAccuracy predicts ranks of FSDP2 and of torch's pipelines with some blocks
// checkpointed. devmap.measure ran them on a fake process group, without a GPU
// (measured/how/measure_recomputed.py).
func TestRecomputedAccuracy(t *testing.T) {
	rows := fakeRows(t, "../../../fixtures/measured/recomputed.jsonl")
	judgeFake(t, rows, "some blocks recomputed", .1, .01)
	measured := map[string]int64{}
	for i := range rows {
		measured[rows[i].name] = rows[i].ranks[0].Peak
	}
	text, err := os.ReadFile("../../../fixtures/measured/recomputed_predicted.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var off []float64 // of what was predicted before the rows were measured, in percent
	for line := range strings.Lines(string(text)) {
		var row struct {
			Case      string
			Predicted int64
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		off = append(off, 100*math.Abs(float64(row.Predicted)/float64(measured[row.Case])-1))
	}
	if slices.Max(off) > .5 || len(off) < 20 || len(off) != len(rows) {
		t.Errorf("%d predictions of %d rows, up to %.2f %% off", len(off), len(rows), slices.Max(off))
	}
}
