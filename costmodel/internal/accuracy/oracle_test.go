package accuracy_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// oracleCell is one step of a small model that devmap.measure followed without a GPU
// (fixtures/oracle/peaks.py; Transformers 5.17, an H200). Cells have their peaks at different
// moments: a layer's forward, the logits, saved activations, the loss, a checkpointed layer,
// adapters, other precisions, scores in memory.
type oracleCell struct {
	Type, Cell, Mode string
	Config           json.RawMessage
	Batch, Seq, LoRA int64
	Peak             int64
	Release          string // empty: 5.17
	sampled
}

// sampled are the further fields of a row of a GPU (fixtures/measured/peaks_h200.jsonl).
type sampled struct {
	Name      string
	Predicted int64 // by devmap.measure, before the run
	Corrected int64 // once a fault of it that the run showed was corrected
	Devmap    int64 // by a plan, before the run
	Settings  struct {
		DType     string
		Inputs    string // audio: the tokens are the decoder's; image: there are none
		Autocast  bool
		LoRA      int64
		Targets   []string // of LoRA; empty: all linear layers
		Optimizer string   // empty: AdamW
		Attn      string
	}
}

func oracleCells(t *testing.T, name string) []oracleCell {
	t.Helper()
	return typed(t, fixtures.Must(fixtures.Rows[oracleCell]("../../../fixtures/oracle/"+name))(t))
}

// typed names the type of the parameters in configs, as peaks.py has plans: some buffers have it too.
func typed(t *testing.T, cells []oracleCell) []oracleCell {
	t.Helper()
	for i := range cells {
		var config map[string]json.RawMessage
		if err := json.Unmarshal(cells[i].Config, &config); err != nil {
			t.Fatal(err)
		}
		config["dtype"] = json.RawMessage(`"bfloat16"`)
		if cells[i].Settings.DType == "fp32" {
			config["dtype"] = json.RawMessage(`"float32"`)
		}
		cells[i].Config = fixtures.Must(json.Marshal(config))(t)
	}
	return cells
}

func (cell *oracleCell) workload() costmodel.Workload {
	w := costmodel.Workload{Mode: costmodel.Infer, Batch: cell.Batch, Seq: cell.Seq, Precision: costmodel.BF16True, Preset: "accelerate-loop", OneGPU: true}
	switch settings := &cell.Settings; {
	case settings.Autocast:
		w.Precision = costmodel.BF16Mixed
	case settings.DType == "fp32":
		w.Precision = costmodel.FP32True
	}
	if cell.Cell == value.EagerAttention {
		w.Attention = value.EagerAttention
	}
	if cell.LoRA += cell.Settings.LoRA; cell.LoRA > 0 {
		cell.Settings.LoRA = 0
	}
	if cell.Settings.Attn == value.FlashAttention {
		w.Attention = value.FlashAttention
	}
	switch cell.Settings.Inputs {
	case "audio":
		w.Seq, w.TargetSeq = 0, cell.Seq
	case "image":
		w.Seq = 0
	}
	switch cell.Mode {
	case "prefill":
	case "generate":
		w.NewTokens = 16
	default:
		optimizers := map[string]string{"": costmodel.AdamW, "adamw-foreach": costmodel.AdamW, "adamw-loop": costmodel.AdamW, "sgd": "sgd-momentum"}
		w.Mode, w.Optimizer = costmodel.Train, cmp.Or(optimizers[cell.Settings.Optimizer], cell.Settings.Optimizer)
	}
	if strings.HasPrefix(cell.Mode, "ckpt") {
		w.Recompute = costmodel.RecomputeFull
	}
	if cell.LoRA > 0 {
		w.LoRARank, w.LoRATargets, w.LoRAPrecision = cell.LoRA, []string{"all-linear"}, "fp32"
		if cell.Settings.Targets != nil {
			w.LoRATargets = cell.Settings.Targets
		}
	}
	return w
}

// TestOracleCells predicts each cell. Every difference is inside the band that a plan of
// the type states, and the share within 1 % does not fall.
func TestOracleCells(t *testing.T) {
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	cells := oracleCells(t, "peaks.jsonl.gz")
	near := 0
	var table strings.Builder
	for i := range cells {
		cell := &cells[i]
		off, stated, _ := cell.off(t, gpu, measuredRelease)
		if max(off, -off) <= 0.01 {
			near++
		} else {
			fmt.Fprintf(&table, "\n%-20s %-9s %+7.2f%%", cell.Type, cell.Cell, 100*off)
		}
		if stated = max(stated, 0.01); max(off, -off) > stated {
			t.Errorf("%s %s: off by %+.2f %%; a plan states %.1f %%", cell.Type, cell.Cell, 100*off, 100*stated)
		}
	}
	if least := oracleNear * len(cells) / 100; near < least {
		t.Errorf("%d of %d cells are within 1 %%; at least %d were", near, len(cells), least)
	}
	types := slices.CompactFunc(slices.Clone(cells), func(one, other oracleCell) bool { return one.Type == other.Type })
	t.Logf("%d of %d cells of %d types within 1 %%; the others:%s", near, len(cells), len(types), table.String())
}

// TestOracleCellsOfTables: the same for types with operations from the table, of Transformers 5.24.
// Their plans state the largest difference.
func TestOracleCellsOfTables(t *testing.T) {
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	cells := oracleCells(t, "peaks_types.jsonl.gz")
	worst, near := make(map[string]float64), 0
	for i := range cells {
		off, stated, _ := cells[i].off(t, gpu, "5.24")
		off = max(off, -off)
		if worst[cells[i].Type] = max(worst[cells[i].Type], off); off <= 0.01 {
			near++
		}
		if off > stated || stated == 0 {
			t.Errorf("%s %s: off by %.2f %%; a plan states %.1f %%", cells[i].Type, cells[i].Cell, 100*off, 100*stated)
		}
	}
	if 100*near < 99*len(cells) {
		t.Errorf("%d of %d cells are within 1 %%", near, len(cells))
	}
	t.Logf("%d of %d cells of %d types within 1 %%: %v", near, len(cells), len(worst), worst)
}

// TestReplayedCells: a training whose requests are replayed one by one has the oracle's peak.
func TestReplayedCells(t *testing.T) {
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	cells, replayed := oracleCells(t, "peaks_types.jsonl.gz"), 0
	for i := range cells {
		cell := &cells[i]
		graph, costs := costsOf(t, cell.Config, cell.workload(), "5.24")
		units := make([]int, len(graph.Units))
		for unit := range units {
			units[unit] = unit
		}
		if cell.workload().Mode != costmodel.Train || costs.Marks == nil || len(costs.Marks(units, true)) != 1 { // one range of two steps
			continue
		}
		replayed++
		if off, _, _ := cell.off(t, gpu, "5.24"); max(off, -off) > 0.001 {
			t.Errorf("%s %s, batch %d × %d: off by %+.3f %%", cell.Type, cell.Cell, cell.Batch, cell.Seq, 100*off)
		}
	}
	if replayed < 90 {
		t.Errorf("%d cells are replayed", replayed)
	}
	t.Logf("%d cells", replayed)
}

// oracleNear is the least per cent of cells within 1 %.
const oracleNear = 97

// off is the difference of a plan's peak, and the band that the plan states. A peak that is a lower
// bound may be all below, and has no family.
func (cell *oracleCell) off(t *testing.T, gpu catalogue.GPU, release string) (off, stated float64, family string) {
	t.Helper()
	graph, costs := costsOf(t, cell.Config, cell.workload(), release)
	topology := &costmodel.Topology{Devices: []costmodel.Device{gpu.Device(costs.Workload.Mode)}}
	predicted := devicemap.Predict(costs, topology, make(devicemap.Map, len(graph.Units)))
	off = float64(predicted[0].Predicted.PeakAllocatedBytes)/float64(cell.Peak) - 1
	if off < 0 && strings.Contains(strings.Join(graph.Warnings, "\n"), "activations are not counted") {
		return off, 1, ""
	}
	return off, costs.Band, graph.Family
}

// elsewhere is the difference of a plan by what holds for several GPUs and Trainer: rules, if the
// tape is for one GPU.
func (cell *oracleCell) elsewhere(t *testing.T, gpu catalogue.GPU, release string, alone float64) float64 {
	t.Helper()
	graph := fixtures.Must(hf.FromConfig("config.json", cell.Config, release))(t)
	off := func(one bool) float64 {
		w := cell.workload()
		w.OneGPU = one
		w, err := estimate.Resolve(graph, w)
		if err != nil {
			t.Fatal(err)
		}
		costs := fixtures.Must(estimate.Table(graph, w))(t)
		topology := &costmodel.Topology{Devices: []costmodel.Device{gpu.Device(w.Mode)}}
		return float64(devicemap.Predict(costs, topology, make(devicemap.Map, len(graph.Units)))[0].Predicted.PeakAllocatedBytes)/float64(cell.Peak) - 1
	}
	shared := off(false)
	var none modelgraph.Layer
	for i := range graph.Layers {
		graph.Layers[i].Learned = none.Learned
	}
	if rules := off(true); rules != alone && shared == off(false) {
		return rules
	}
	return alone
}

// TestSampledRows compares rows of an H200 with sampled configs. devmap.measure is within 0.1 % or 2 MiB
// (rests of two blocks) in all rows but the unexplained ones, after corrections. Plans are within their stated bands.
func TestSampledRows(t *testing.T) {
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	var table strings.Builder
	rows, plans, near := 0, 0, 0
	for _, row := range sampledRows(t) {
		rows++
		traced := row.traced(t)
		if row.Devmap == 0 {
			continue
		}
		plans++
		off, stated, _ := row.off(t, gpu, cmp.Or(row.Release, measuredRelease))
		if max(off, -off) <= 0.005 {
			near++
		}
		if stated = max(stated, 0.01); max(off, -off) > stated {
			t.Errorf("%s %s: off by %+.2f %%; a plan states %.1f %%", row.Name, row.Mode, 100*off, 100*stated)
		}
		fmt.Fprintf(&table, "\n%-24s %-8s %9.1f MiB, measure %s, plan %+.2f %%", row.Name, row.Mode, float64(row.Peak)/(1<<20), traced, 100*off)
	}
	if rows != 291 || plans != 271 || 100*near < 79*plans {
		t.Errorf("%d of %d plans of %d rows are within 0.5 %%; there are 271 of 291", near, plans, rows)
	}
	t.Logf("%d of %d plans within 0.5 %%:%s", near, plans, table.String())
}

func sampledRows(t *testing.T) (rows []oracleCell) {
	t.Helper()
	for _, row := range fixtures.Must(fixtures.Rows[oracleCell]("../../../fixtures/measured/peaks_h200.jsonl"))(t) {
		if (row.Devmap > 0 || row.Predicted > 0) && row.Config != nil {
			rows = append(rows, row)
		}
	}
	return typed(t, rows)
}

// unexplained are the bytes by which devmap.measure misses rows of an H200, mostly by rests of blocks
// that the allocator leaves uncut. The cause was not found.
var unexplained = map[string]int64{
	"minicpm3 sampled": 3407872, "convnext.train": 4185600, "swin.train": 10448896, "distilbert.autocast": 2752512, "mt5.ckpt": -2948096,
	"nomic_bert.layers": 2408448, "openai-gpt.layers": 3145728, "lfm2.layers": -5767168, "doge.layers": 4194304, "longt5.layers": 2293760,
	"xlm-roberta-xl.layers": 4777984, "gemma3_text.generate": -7340032, "wavlm.train": -6994944,
	"swin.train.autocast fresh": 4705280, "swin.train fresh": 2326528, "stablelm.autocast fresh": 2752512, "t5.ckpt fresh": -5242880,
}

// traced is the difference of devmap.measure, if it ran before.
func (cell *oracleCell) traced(t *testing.T) string {
	t.Helper()
	if cell.Predicted == 0 {
		return "not asked"
	}
	missed := cmp.Or(cell.Corrected, cell.Predicted) - cell.Peak
	outside := max(missed, -missed) > max(cell.Peak/1000, 2<<20)
	if stated := unexplained[cell.Name]; outside && missed != stated || !outside && stated != 0 {
		t.Errorf("%s %s: devmap.measure is off by %d bytes, which the list of unexplained rows does not say", cell.Name, cell.Mode, missed)
	}
	return fmt.Sprintf("%+.3f %%", 100*float64(missed)/float64(cell.Peak))
}

// TestBlindCells: cells of five fresh seeds over all types that are read, each predicted before the
// oracle ran. Every plan is within its stated band, and the part within 1 % does not fall.
// Predictions are from before later corrections; the sweep was for development.
func TestBlindCells(t *testing.T) {
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	for name, least := range map[string]int{"peaks_blind.jsonl.gz": 653, "peaks_sweep.jsonl.gz": 1235} {
		cells := oracleCells(t, name)
		then, near := 0, 0
		for i := range cells {
			cell := &cells[i]
			off, stated, _ := cell.off(t, gpu, cmp.Or(cell.Release, measuredRelease))
			if stated = max(stated, 0.01); max(off, -off) > stated {
				t.Errorf("%s %s: off by %+.2f %%; a plan states %.1f %%", cell.Type, cell.Cell, 100*off, 100*stated)
			}
			if max(off, -off) <= 0.01 {
				near++
			}
			if before := float64(cell.Predicted)/float64(cell.Peak) - 1; max(before, -before) <= 0.01 {
				then++
			}
		}
		if near < least {
			t.Errorf("%s: %d of %d cells are within 1 %%; %d were", name, near, len(cells), least)
		}
		t.Logf("%s: %d of %d cells within 1 %%; %d were as predicted", name, near, len(cells), then)
	}
}

// TestBands: the bands of costmodel/estimate/bands.json follow from the differences of all
// cells. UPDATE_GOLDEN=1 writes them. A band that is wider than it needs to be is no error.
func TestBands(t *testing.T) {
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	most := make(map[string]map[string]float64)
	note := func(cells []oracleCell, release string, split bool) {
		for i := range cells {
			cell := &cells[i]
			kind := cell.kind()
			off, _, family := cell.off(t, gpu, cmp.Or(cell.Release, release))
			if family == "" {
				continue
			}
			if split {
				kind += " split"
				off = cell.elsewhere(t, gpu, cmp.Or(cell.Release, release), off)
			}
			if most[family] == nil {
				most[family] = make(map[string]float64)
			}
			most[family][kind] = max(most[family][kind], off, -off)
		}
	}
	for _, split := range []bool{false, true} {
		note(slices.DeleteFunc(sampledRows(t), func(row oracleCell) bool { return row.Devmap == 0 || row.Settings.Optimizer != "" }), measuredRelease, split)
		note(oracleCells(t, "peaks_types.jsonl.gz"), "5.24", split)
		for _, name := range []string{"peaks.jsonl.gz", "peaks_blind.jsonl.gz", "peaks_sweep.jsonl.gz"} {
			note(oracleCells(t, name), measuredRelease, split)
		}
	}
	text := fixtures.Must(os.ReadFile("../../estimate/bands.json"))(t)
	var stated map[string]map[string]float64
	if err := json.Unmarshal(text, &stated); err != nil {
		t.Fatal(err)
	}
	for kind, of := range most {
		var widest, split float64
		for step, off := range of {
			if split = max(split, off); !strings.HasSuffix(step, " split") {
				widest = max(widest, off)
			}
		}
		of["other"], of["other split"] = widest, split
		offs := maps.Clone(of)
		for step, off := range offs {
			of[step] = band(max(2*off, widest))
			if plain, ok := strings.CutSuffix(step, " split"); ok {
				of[step] = band(max(2*off, split))
				if of[step] <= band(max(2*offs[plain], widest)) {
					delete(of, step)
				}
			}
			if stated[kind][step] < of[step] && os.Getenv("UPDATE_GOLDEN") == "" {
				t.Errorf("%s %s: the band is %g, its cells need %g", kind, step, stated[kind][step], of[step])
			}
		}
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		text := fixtures.Must(json.Marshal(most))(t)
		lines := bytes.ReplaceAll(text, []byte("},"), []byte("},\n")) // a line a type
		if err := os.WriteFile("../../estimate/bands.json", append(lines, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// band is a difference in steps of half a per cent, at least 1 %, and less than a whole peak.
func band(off float64) float64 { return min(950, max(10, math.Ceil(200*off)*5)) / 1000 }

// kind is the kind of a cell's step (costmodel/estimate/warn.go).
func (cell *oracleCell) kind() string {
	switch w := cell.workload(); {
	case w.LoRARank > 0:
		return "lora"
	case w.Precision == costmodel.BF16Mixed:
		return "autocast"
	case w.Precision == costmodel.FP32True:
		return "fp32"
	case w.Attention != "":
		return value.EagerAttention
	case w.Mode == costmodel.Train:
		return "train"
	}
	return "infer"
}
