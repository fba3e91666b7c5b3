package accuracy_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
)

// zeroSettings are those of a row of DeepSpeed's, whose options are words.
func (r *fakeRow) zeroSettings(t *testing.T, opts []string, number func(string) int64) {
	set := zero.Defaults(int64(r.engine[4] - '0'))
	has := func(word string) bool { return slices.Contains(opts, word) }
	if has("hfauto") {
		hidden := hiddenOf(t, r.model)
		set.ReduceBucket, set.Prefetch, set.Persistence = hidden*hidden, hidden*hidden*9/10, 10*hidden
	}
	for _, size := range []struct {
		key  string
		to   *int64
		each int64
	}{
		{"rb", &set.ReduceBucket, 1e6}, {"ag", &set.AllgatherBucket, 1e6}, {"pf", &set.Prefetch, 1e6}, {"ml", &set.Live, 1e6},
		{"mr", &set.Reuse, 1e6}, {"sg", &set.SubGroup, 1e6}, {"pt", &set.Persistence, 1e3},
	} {
		for _, opt := range opts {
			if n, ok := strings.CutPrefix(opt, size.key); ok && n != "" && strings.Trim(n, "0123456789") == "" {
				*size.to = number(n) * size.each
			}
		}
	}
	set.Overlap = (set.Overlap || has("overlap")) && !has("nooverlap")
	set.Contiguous = !has("nocontig")
	set.OffloadOptimizer, set.OffloadParams = has("offopt"), has("offparam")
	set.FP32Gradients = has("nosection-bf16")
	set.FP32Reduction = set.FP32Gradients
	switch {
	case has("master"):
		r.w.Precision = costmodel.BF16True
	case has("nosection-fp32"):
		r.w.Precision = costmodel.FP32True
	}
	r.w.DeepSpeed = &set
}

// hiddenOf is a model's hidden size.
func hiddenOf(t *testing.T, model string) int64 {
	t.Helper()
	var config struct {
		Hidden int64 `json:"hidden_size"`
	}
	if err := json.Unmarshal(distConfig(t, model), &config); err != nil {
		t.Fatal(model, err)
	}
	return config.Hidden
}

// TestPredictRows writes what rows that are not measured yet would show.
func TestPredictRows(t *testing.T) {
	list := os.Getenv("PREDICT_ROWS")
	if list == "" {
		t.Skip("PREDICT_ROWS names no file of cases")
	}
	data, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(list + ".predicted.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		r := newFakeRow(t, distRank{Case: line})
		if r.engine == "lora-1f1b" {
			r.ranks[0].Bounds = evenly(t, r.model, int(r.w.World))
		}
		got, at := predictFake(t, &r)
		if err := json.NewEncoder(out).Encode(map[string]any{"case": line, "predicted": got, "at": at}); err != nil {
			t.Fatal(err)
		}
	}
}

// evenly are the layers of each stage, the first ones with one more.
func evenly(t *testing.T, model string, stages int) [][2]int {
	t.Helper()
	var config struct {
		Layers int `json:"num_hidden_layers"`
	}
	if err := json.Unmarshal(distConfig(t, model), &config); err != nil {
		t.Fatal(model, err)
	}
	var out [][2]int
	for stage, at := 0, 0; stage < stages; stage++ {
		end := at + config.Layers/stages
		if stage < config.Layers%stages {
			end++
		}
		out, at = append(out, [2]int{at, end}), end
	}
	return out
}
