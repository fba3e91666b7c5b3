package accuracy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// distRank is one rank of a run under torchrun (measure_dist.py).
type distRank struct {
	Case         string
	Bounds       [][2]int  // layers of each stage
	MicroBatches int64     `json:"micro_batches"`
	Peak         int64     `json:"peak_allocated"`
	Reserved     int64     `json:"peak_reserved"`
	ReservedEach []int64   `json:"reserved_each"`
	PeakEach     []int64   `json:"peak_each"`
	NVML         int64     `json:"nvml_end"`
	Seconds      []float64 `json:"step_seconds"`
}

// distRow is one run: a rank each GPU.
type distRow struct {
	name, engine, model string
	ranks               []distRank
	w                   costmodel.Workload
	// shared: measured in one process after runs of other kinds, with their communicators still alive.
	shared bool
}

// distRows are the rows of fixtures/measured/dist_*.json. dist_more.json, dist_families.json and
// dist_cuts.json were measured on 2026-11-21, after the predictions.
func distRows(t *testing.T) []distRow {
	t.Helper()
	runs := map[string][]distRank{}
	read(t, "../../../fixtures/measured/dist_more.json", &runs)
	read(t, "../../../fixtures/measured/dist_families.json", &runs)
	read(t, "../../../fixtures/measured/dist_cuts.json", &runs)
	files, err := filepath.Glob("../../../fixtures/measured/dist_*_*_*_*.json")
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	var rows []distRow
	for _, file := range files {
		var ranks []distRank
		read(t, file, &ranks)
		rows = append(rows, newDistRow(t, ranks))
	}
	for _, ranks := range runs {
		r := newDistRow(t, ranks)
		r.shared = true
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b distRow) int { return strings.Compare(a.name, b.name) })
	return rows
}

var schedules = map[string]costmodel.ScheduleKind{"gpipe": costmodel.GPipe, "1f1b": costmodel.OneFOneB, "i1f1b": costmodel.Interleaved}

// newDistRow reads engine:model:batch:seq:opt,opt.
func newDistRow(t *testing.T, ranks []distRank) distRow {
	t.Helper()
	parts := append(strings.Split(ranks[0].Case, ":"), "")
	batch, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		t.Fatal(ranks[0].Case, err)
	}
	seq, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		t.Fatal(ranks[0].Case, err)
	}
	opts := strings.Split(parts[4], ",")
	r := distRow{name: ranks[0].Case, engine: parts[0], model: parts[1], ranks: ranks}
	r.w = costmodel.Workload{
		Mode: costmodel.Train, Batch: batch, Seq: seq, World: int64(len(ranks)), Precision: costmodel.FP32True,
		Optimizer: costmodel.AdamW, GradientViews: slices.Contains(opts, "gbv"), LossOnly: true,
	}
	switch {
	case slices.Contains(opts, "bf16"):
		r.w.Precision = costmodel.BF16True
	case slices.Contains(opts, "mp"):
		r.w.Precision = costmodel.BF16Mixed
	}
	if slices.Contains(opts, "ckpt") {
		r.w.Recompute = costmodel.RecomputeFull
	}
	for _, opt := range opts {
		if blocks, ok := strings.CutPrefix(opt, "blocks"); ok {
			r.w.Recompute = strings.ReplaceAll(blocks, "+", ",")
		}
	}
	switch r.engine {
	case "ddp":
		r.w.Strategy = costmodel.DDP
	case "fsdp2":
		r.w.Strategy = costmodel.FSDP
	case "hsdp":
		r.w.Strategy = costmodel.HSDP
	default:
		r.w.Strategy, r.w.Precision, r.w.MicroBatches = costmodel.Pipeline, costmodel.BF16True, ranks[0].MicroBatches
		r.w.Schedule = schedules[r.engine]
	}
	return r
}

// place is the run's map: the embedding on the first stage, units after the blocks on the last; nil
// if every GPU runs the whole model.
func (r *distRow) place(g *modelgraph.Graph) devicemap.Map {
	if r.w.Strategy.Traits().Replicated {
		return nil
	}
	bounds := r.ranks[0].Bounds
	m := make(devicemap.Map, len(g.Units))
	for u := range g.Units {
		name := g.Units[u].Name
		stage := 0
		switch n, ok := strings.CutPrefix(name, "model.layers."); {
		case ok:
			i, _ := strconv.Atoi(n)
			stage = slices.IndexFunc(bounds, func(b [2]int) bool { return i < b[1] })
		case name != "model.embed_tokens":
			stage = len(bounds) - 1
		}
		m[u] = devicemap.Device(stage % int(r.w.World))
	}
	return m
}

// distConfig is the config of a model that measure_dist.py ran.
func distConfig(t *testing.T, model string) []byte {
	t.Helper()
	if c := peerConfigs[model]; c != "" {
		return []byte(c)
	}
	if model == "mistral-7b" {
		model = "mistral-7b-v0.1"
	}
	model, layers, cut := strings.Cut(model, "@") // of so many layers
	if model == "qwen2.5-1.5b" {
		data := []byte(`{"model_type": "qwen2", "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
			"vocab_size": 151936, "max_position_embeddings": 32768, "tie_word_embeddings": true, "torch_dtype": "bfloat16"}`)
		return shortened(data, layers, cut)
	}
	data, err := os.ReadFile("../../../fixtures/models/" + model + "/config.json")
	if err != nil {
		t.Fatal(err)
	}
	return shortened(data, layers, cut)
}

// shortened is a config with another number of layers.
func shortened(data []byte, layers string, cut bool) []byte {
	if cut {
		data = regexp.MustCompile(`("num_hidden_layers": *)\d+`).ReplaceAll(data, []byte("${1}"+layers))
	}
	return data
}

// measuredRelease is the release of Transformers that ran the rows.
const measuredRelease = "5.17"

// costsOf is the model of a config and what its units cost.
func costsOf(t *testing.T, config []byte, w costmodel.Workload, release ...string) (*modelgraph.Graph, *costmodel.Table) {
	t.Helper()
	if len(release) == 0 {
		release = []string{measuredRelease}
	}
	g, err := hf.FromConfig("config.json", config, release...)
	if err != nil {
		t.Fatal(err)
	}
	w, err = estimate.Resolve(g, w)
	if err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	return g, table
}
