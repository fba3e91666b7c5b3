package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

type (
	contractEstimate struct {
		FormatVersion string           `json:"format_version"`
		Rows          []contractRow    `json:"rows"`
		Auto          *contractAuto    `json:"accelerate_auto"`
		Refused       []map[string]any `json:"refused,omitempty"`
		Warnings      []string         `json:"warnings"`
	}
	contractRow struct {
		Strategy           string   `json:"strategy"`
		Runtime            string   `json:"runtime"`
		Fits               bool     `json:"fits"`
		Verdict            string   `json:"verdict"`
		PeakAllocatedBytes []int64  `json:"peak_allocated_bytes"`
		HeadroomBytes      int64    `json:"headroom_bytes"`
		CommunicationBytes int64    `json:"communication_bytes"`
		StepSeconds        *float64 `json:"step_seconds"`
		Batch              int64    `json:"batch"`
		TokensPerStep      int64    `json:"tokens_per_step"`
		TokensPerSecond    *float64 `json:"tokens_per_second"`
		Flags              []string `json:"flags"`
	}
	contractAuto struct {
		contractRow
		DeviceMap map[string]any `json:"device_map"`
	}
)

// TestEstimateContract: the rows have the contract's form. The flags of each row reproduce its plan
// byte for byte.
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
			checkOrder(t, doc.Rows)
			checkAuto(t, args, doc.Auto)
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
	var p struct {
		contractPlan
		Verdict string `json:"verdict"`
	}
	// Other tests check the plan's own form.
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
	if p.Verdict != r.Verdict {
		t.Errorf("%s %v: %s, the plan is %s", r.Strategy, r.Flags, r.Verdict, p.Verdict)
	}
	if !reflect.DeepEqual(p.StepSeconds, r.StepSeconds) {
		t.Errorf("%s: %v seconds a step, the plan has %v", r.Strategy, r.StepSeconds, p.StepSeconds)
	}
}

// verdictOf returns a device's verdict by the contract's definition.
func verdictOf(d *contractDevice) string {
	switch {
	case d.HeadroomBytes < 0:
		return "no"
	case d.HeadroomBytes < d.Predicted.SlackBytes[1]:
		return "tight"
	}
	return "fits"
}

// checkVerdicts compares the verdicts of devices and of their plan with the contract's.
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

// checkOrder checks the order of rows. Rows that fit come first, by tokens per second. The others
// follow, by the missing bytes.
func checkOrder(t *testing.T, rows []contractRow) {
	t.Helper()
	for i := 1; i < len(rows); i++ {
		a, b := &rows[i-1], &rows[i]
		switch {
		case !a.Fits && b.Fits:
			t.Errorf("%s does not fit, and stands before %s", a.Strategy, b.Strategy)
		case a.Fits && b.Fits && a.TokensPerSecond != nil && b.TokensPerSecond != nil && *a.TokensPerSecond < *b.TokensPerSecond:
			t.Errorf("%s makes %.0f tokens a second, and %s %.0f", a.Strategy, *a.TokensPerSecond, b.Strategy, *b.TokensPerSecond)
		case !a.Fits && !b.Fits && a.HeadroomBytes < b.HeadroomBytes:
			t.Errorf("%s misses more than %s", a.Strategy, b.Strategy)
		}
	}
}

// checkAuto compares devmap check of Accelerate's own map with the row.
func checkAuto(t *testing.T, args []string, auto *contractAuto) {
	t.Helper()
	if auto == nil {
		t.Error("no map of Accelerate's own")
		return
	}
	text, err := json.Marshal(auto.DeviceMap)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "map.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var checked struct {
		Devices []contractDevice `json:"devices"`
		Verdict string           `json:"verdict"`
	}
	answer := devmap(t, out.ExitDone, append([]string{"check", "--json", args[0], file}, args[1:]...)...)
	if err := json.Unmarshal(answer, &checked); err != nil {
		t.Fatal(err)
	}
	var peaks []int64
	for i := range checked.Devices {
		peaks = append(peaks, checked.Devices[i].Predicted.PeakAllocatedBytes)
	}
	if !slices.Equal(peaks, auto.PeakAllocatedBytes) {
		t.Errorf("peaks of %d, and devmap check says %d", auto.PeakAllocatedBytes, peaks)
	}
}

// TestSameWork: every row trains the same batch, which replicas divide. The least is one sequence
// per GPU.
func TestSameWork(t *testing.T) {
	for _, c := range []struct {
		batch        string
		tokens, most int64
	}{{"8", 8 * 512, 8 * 512}, {"4", 4 * 512, 4 * 512}, {"2", 2 * 512, 4 * 512}} {
		var doc contractEstimate
		decode(t, devmap(t, out.ExitDone, "estimate", "--json", "qwen2.5-0.5b", "--gpus", "4", "--mode", "train", "--batch", c.batch, "--seq", "512"), &doc)
		for _, row := range doc.Rows {
			want := c.tokens
			if row.Strategy != "device-map" && row.Strategy != "pipeline" {
				want = c.most
			}
			if row.TokensPerStep != want {
				t.Errorf("batch %s: %s works on %d tokens a step, want %d", c.batch, row.Strategy, row.TokensPerStep, want)
			}
		}
	}
}

// TestEstimateBand: a row says maybe, on tight GPUs too, if the plan's note says that the band includes a miss.
func TestEstimateBand(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, []byte(`{"model_type":"longformer","architectures":["LongformerForMaskedLM"],"num_hidden_layers":48,"attention_window":512,"vocab_size":50265,"max_position_embeddings":4098}`), 0o600); err != nil {
		t.Fatal(err)
	}
	gpus := []string{config, "--gpus", "2", "--gpu", "l4", "--mode", "train", "--batch", "3"}
	if text := string(devmap(t, out.ExitDone, append([]string{"estimate"}, gpus...)...)); strings.Count(text, " maybe ") < 3 || strings.Contains(text, " tight ") {
		t.Errorf("three rows do not say maybe:\n%s", text)
	}
}
