package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
)

// predictedRow is what devmap says of a row before it is measured. Digest is of the plan's file.
type predictedRow struct {
	Name   string  `json:"case"`
	Date   string  `json:"date"` // when the prediction was made
	Peaks  []int64 `json:"peak_allocated_bytes"`
	Used   []int64 `json:"device_used_bytes"`
	Step   float64 `json:"step_seconds"` // 0: not predicted
	Digest string  `json:"digest"`
}

// TestEightPredicted compares the predictions for eight GPUs (eight_predicted.jsonl) with what
// devmap predicts now for the rows of `make gpu PART=eight`. UPDATE_GOLDEN=1 writes those that differ,
// with the date.
func TestEightPredicted(t *testing.T) {
	const measured = "../../fixtures/measured"
	rows := fixtures.Must(os.ReadFile(filepath.Join(measured, "how", "eight.txt")))(t)
	golden, update := filepath.Join(measured, "eight_predicted.jsonl"), os.Getenv("UPDATE_GOLDEN") == "1"
	before := map[string]predictedRow{}
	for _, row := range fixtures.Must(fixtures.Rows[predictedRow](golden))(t) {
		before[row.Name] = row
	}
	var written []byte
	for line := range strings.Lines(string(rows)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), "|")
		flags := strings.NewReplacer("{n}", "8", "{half}", "4").Replace(fields[4])
		got := predictedOf(t, fields[0]+", "+fields[3], fields[3], strings.Fields(flags))
		want := before[got.Name]
		if got.Date = want.Date; cmp.Diff(want, got) != "" {
			got.Date = time.Now().UTC().Format(time.DateOnly)
			if !update {
				t.Errorf("%s (committed −, now +): UPDATE_GOLDEN=1 writes it\n%s", got.Name, cmp.Diff(want, got))
			}
		}
		written = append(append(written, fixtures.Must(json.Marshal(got))(t)...), '\n')
	}
	if n := bytes.Count(written, []byte{'\n'}); n != len(before) && !update {
		t.Errorf("%d rows, and %d predictions are committed", n, len(before))
	}
	if update {
		if err := os.WriteFile(golden, written, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// predictedOf plans a row on GPUs of the catalogue.
func predictedOf(t *testing.T, name, model string, flags []string) predictedRow {
	t.Helper()
	data := devmap(t, 0, append([]string{"plan", model, "--gpu", "h200-141gb"}, flags...)...)
	var plan struct {
		StepSeconds float64 `json:"step_seconds"`
		Devices     []struct {
			Predicted struct {
				PeakAllocatedBytes int64 `json:"peak_allocated_bytes"`
				DeviceUsedBytes    int64 `json:"device_used_bytes"`
			}
		}
	}
	if err := json.Unmarshal(data, &plan); err != nil {
		t.Fatal(err)
	}
	row := predictedRow{Name: name, Step: plan.StepSeconds, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data))}
	for _, device := range plan.Devices {
		row.Peaks = append(row.Peaks, device.Predicted.PeakAllocatedBytes)
		row.Used = append(row.Used, device.Predicted.DeviceUsedBytes)
	}
	return row
}

// TestEightWithoutGPUs compares predictions for eight GPUs with what needs fewer (eight_oracle.jsonl):
// one rank under torch's fake process group on one H200, and devmap.measure on a CPU.
func TestEightWithoutGPUs(t *testing.T) {
	const worst = 0.05 // percent
	type rank struct {
		Name  string  `json:"case"`
		First int     `json:"first"` // GPU of the first peak
		Peaks []int64 `json:"peak_allocated_bytes"`
		How   string  `json:"how"`
	}
	const measured = "../../fixtures/measured/"
	predicted := map[string][]int64{}
	for _, row := range fixtures.Must(fixtures.Rows[predictedRow](measured + "eight_predicted.jsonl"))(t) {
		predicted[row.Name] = row.Peaks
	}
	found := 0
	for _, row := range fixtures.Must(fixtures.Rows[rank](measured + "eight_oracle.jsonl"))(t) {
		for i, peak := range row.Peaks {
			want := predicted[row.Name][row.First+i]
			if off := 100 * (float64(want)/float64(peak) - 1); math.Abs(off) > worst {
				t.Errorf("%s, GPU %d: predicted %d, %d by %s: %+.3f %%", row.Name, row.First+i, want, peak, row.How, off)
			}
			found++
		}
	}
	if found < 15 {
		t.Errorf("%d peaks", found)
	}
}
