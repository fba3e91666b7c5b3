package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

type (
	contractEstimate struct {
		FormatVersion string           `json:"format_version"`
		Rows          []contractRow    `json:"rows"`
		Refused       []map[string]any `json:"refused,omitempty"`
	}
	contractRow struct {
		Strategy           string   `json:"strategy"`
		Runtime            string   `json:"runtime"`
		Fits               bool     `json:"fits"`
		PeakAllocatedBytes []int64  `json:"peak_allocated_bytes"`
		HeadroomBytes      int64    `json:"headroom_bytes"`
		CommunicationBytes int64    `json:"communication_bytes"`
		StepSeconds        *float64 `json:"step_seconds"`
		Flags              []string `json:"flags"`
	}
)

// TestEstimateContract: the rows have the contract's form, and the flags of
// each reproduce its plan, byte for byte.
func TestEstimateContract(t *testing.T) {
	for name, args := range map[string][]string{
		"train":    {"qwen2.5-0.5b", "--gpus", "4", "--mode", "train", "--batch", "4", "--recompute", "full", "--precision", "bf16-mixed"},
		"generate": {"qwen2.5-0.5b", "--gpus", "2", "--gpu", "a100-40gb", "--new-tokens", "64", "--seq", "512", "--reserve", "1GiB"},
		"load":     {"llama-3.1-8b", "--gpus", "20GiB,30GiB", "--mode", "load"},
	} {
		t.Run(name, func(t *testing.T) {
			var doc contractEstimate
			decode(t, devmap(t, out.ExitDone, append([]string{"estimate", "--json"}, args...)...), &doc)
			if doc.FormatVersion != "devmap.estimate/v1" || len(doc.Rows) < 3 {
				t.Fatalf("format %q, %d rows", doc.FormatVersion, len(doc.Rows))
			}
			for i := range doc.Rows {
				checkRow(t, args[0], &doc.Rows[i])
			}
		})
	}
}

func checkRow(t *testing.T, model string, r *contractRow) {
	t.Helper()
	if r.Fits != (r.HeadroomBytes >= 0) {
		t.Errorf("%s fits: %v, with %d bytes left", r.Strategy, r.Fits, r.HeadroomBytes)
	}
	if !r.Fits {
		return
	}
	var p contractPlan
	// The plan's own form is tested elsewhere.
	if err := json.Unmarshal(devmap(t, out.ExitDone, append([]string{"plan", "--json", model}, r.Flags...)...), &p); err != nil {
		t.Fatal(err)
	}
	var peaks, left []int64
	for i := range p.Devices {
		peaks = append(peaks, p.Devices[i].Predicted.PeakAllocatedBytes)
		left = append(left, p.Devices[i].HeadroomBytes)
	}
	if !slices.Equal(peaks, r.PeakAllocatedBytes) || slices.Min(left) != r.HeadroomBytes {
		t.Errorf("%s %v: peaks of %d with %d left, the plan has %d with %d", r.Strategy, r.Flags, r.PeakAllocatedBytes, r.HeadroomBytes, peaks, slices.Min(left))
	}
	if !reflect.DeepEqual(p.StepSeconds, r.StepSeconds) {
		t.Errorf("%s: %v seconds a step, the plan has %v", r.Strategy, r.StepSeconds, p.StepSeconds)
	}
}

// verdictOf is a device's verdict as the contract defines it.
func verdictOf(d *contractDevice) string {
	switch {
	case d.HeadroomBytes < 0:
		return "no"
	case d.HeadroomBytes < d.Predicted.SlackBytes[1]:
		return "tight"
	}
	return "fits"
}

// checkVerdicts holds devices and their plan to the contract's verdicts.
func checkVerdicts(t *testing.T, devices []contractDevice, plan string) {
	t.Helper()
	order, worst := []string{"fits", "tight", "no"}, 0
	for i := range devices {
		d := &devices[i]
		if want := verdictOf(d); d.Verdict != want {
			t.Errorf("devices[%d]: verdict %q of a headroom of %d and slack %v, not %q", i, d.Verdict, d.HeadroomBytes, d.Predicted.SlackBytes, want)
		}
		worst = max(worst, slices.Index(order, verdictOf(d)))
	}
	if plan != order[worst] {
		t.Errorf("the plan's verdict is %q, and the worst of its devices %q", plan, order[worst])
	}
}

func checkModel(t *testing.T, m *contractModel, source string) {
	t.Helper()
	if m.Source != source || m.Name == "" || !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(m.Digest) {
		t.Errorf("model %+v", m)
	}
}
