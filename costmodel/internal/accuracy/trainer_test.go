package accuracy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
	"github.com/devmap-dev/devmap/fixtures"
)

// trainerRow is one rank of transformers' own Trainer (measured/how/measure_trainer.py).
type trainerRow struct {
	Case  string
	Prep  int64
	Steps []int64
	Pool  int64 `json:"peak_reserved"`
	Host  struct{ Pinned int64 }

	model string
	w     costmodel.Workload
	onGPU bool // the model was built there
}

// caseNumber is a part of a case's name that is a number.
func caseNumber(t *testing.T, name, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(name, err)
	}
	return n
}

// rowOptimizers are the optimizers by the name in a row.
var rowOptimizers = map[string]string{
	"foreach": value.AdamWForeach, "adam8": value.AdamW8bit, "paged8": value.PagedAdamW8bit, "paged32": value.PagedAdamW32bit,
}

// usualZero is DeepSpeed's file of a row: its stage, and of stage 3 sizes that it
// leaves to Transformers (zero_file of measured/how).
func usualZero(t *testing.T, model, stage string) *zero.Settings {
	t.Helper()
	set := zero.Defaults(int64(stage[4] - '0'))
	set.Clipping = 1
	if set.Stage == 3 {
		set.ReduceBucket, set.Prefetch, set.Persistence = zero.Auto, zero.Auto, zero.Auto
		set.Fill(hiddenOf(t, model))
	}
	return &set
}

// newTrainerRow reads engine:model:batch:seq:opts:world:rank.
func newTrainerRow(t *testing.T, name string) trainerRow {
	t.Helper()
	parts := strings.Split(name, ":")
	opts := strings.Split(parts[4], ",")
	number := func(text string) int64 { return caseNumber(t, name, text) }
	has := func(opt string) bool { return slices.Contains(opts, opt) }
	row := trainerRow{Case: name, model: parts[1], onGPU: has("gpu"), w: costmodel.Workload{
		Preset: "transformers", Mode: costmodel.Train, Strategy: costmodel.DDP, Batch: number(parts[2]), Seq: number(parts[3]), World: number(parts[5]), LossOnly: true,
	}}
	if !row.onGPU {
		row.w.BuiltOn = "cpu"
	}
	switch parts[0] {
	case "fsdp2":
		row.w.Strategy = costmodel.FSDP
	case "hsdp":
		row.w.Strategy = costmodel.HSDP
	}
	for _, opt := range opts {
		if n, err := strconv.ParseInt(strings.TrimPrefix(opt, "ga"), 10, 64); err == nil {
			row.w.MicroBatches, row.w.Batch = n, row.w.Batch*n
		} else if n, err := strconv.ParseInt(strings.TrimPrefix(opt, "r"), 10, 64); err == nil {
			row.w.LoRARank, row.w.LoRATargets = n, []string{"q_proj", "v_proj"}
		}
	}
	if has("all") {
		row.w.LoRATargets = []string{"all-linear"}
	}
	if has("ac") || has("gc") {
		row.w.Recompute = costmodel.RecomputeFull
	}
	if has("sgd") {
		row.w.Optimizer = costmodel.SGD
	}
	for opt, optimizer := range rowOptimizers {
		if has(opt) {
			row.w.Optimizer = optimizer
		}
	}
	if parts[0] == "zero2" || parts[0] == "zero3" {
		row.w.Strategy, row.w.DeepSpeed = costmodel.Strategy(parts[0]), usualZero(t, row.model, parts[0])
	}
	row.float8(has)
	switch { // what bf16=True comes to
	case (has("amp") || has("f8")) && (row.w.Strategy != costmodel.DDP || row.w.LoRARank > 0 || has("w32")):
		row.w.Precision = costmodel.BF16Mixed
	case has("w32"):
		row.w.Precision = costmodel.FP32True
	}
	return row
}

// float8 sets what torchao does: accelerate's FP8, axolotl's recipe, and optimizers.
func (row *trainerRow) float8(has func(opt string) bool) {
	switch {
	case has("row"):
		row.w.Preset, row.w.Float8 = "axolotl", value.Rowwise
	case has("f8") && !has("nog"):
		row.w.Float8 = value.TensorwiseGathered
	case has("f8"):
		row.w.Float8 = value.Tensorwise
	}
	switch {
	case has("ao8"):
		row.w.Optimizer = value.AdamWTorch8bit
	case has("ao4"):
		row.w.Optimizer = value.AdamWTorch4bit
	}
}

// predicted is the peak of a GPU, its moment, and by how much its pool goes beyond it, as parts of it.
func (row *trainerRow) predicted(t *testing.T) (peakBytes int64, at string, slack [2]float64) {
	t.Helper()
	_, table := costsOf(t, distConfig(t, row.model), row.w)
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	dev := gpu.Device(row.w.Mode)
	peak, slack := replicaPeak(t, table, &dev), table.HeadSlack
	if table.Marks != nil && row.w.Strategy == costmodel.DDP { // its requests are followed
		reserved := mostOf(table)
		for i, beyond := range table.Followed {
			slack[i] = float64(reserved[i])/float64(peak.Memory.Total()) - 1 + beyond
		}
	}
	return peak.Memory.Total(), peak.At, slack
}

// predictRows prints predictions of cases before measurements. A variable names the file of cases.
func predictRows(t *testing.T, variable string, read func(*testing.T, string) trainerRow) {
	t.Helper()
	file := os.Getenv(variable)
	if file == "" {
		t.Skip(variable, "names no file of cases")
	}
	text := fixtures.Must(os.ReadFile(file))(t)
	for name := range strings.FieldsSeq(string(text)) {
		row := read(t, name)
		got, at, slack := row.predicted(t)
		line := fixtures.Must(json.Marshal(map[string]any{"case": name, "peak_allocated": got, "at": at, "slack": slack}))(t)
		t.Log(string(line))
	}
}

// trainerRows are measured rows of training programs, and the bounds of their predictions in percent.
type trainerRows struct {
	file, name    string
	read          func(t *testing.T, name string) trainerRow
	least         int // rows
	worst, middle float64
	wider         map[string]float64 // the bound of single rows, in place of worst
	closer        []string           // rows whose cause is known to the tenth of worst
	pools         bool               // nine in ten pools are in their range
}

// check predicts the rows.
func (rows trainerRows) check(t *testing.T) {
	t.Helper()
	var table strings.Builder
	var off []float64
	inside, counted := 0, 0
	for _, read := range fixtures.Must(fixtures.Rows[trainerRow]("../../../fixtures/measured/" + rows.file))(t) {
		row := rows.read(t, read.Case)
		measured := slices.Max(read.Steps)
		if row.onGPU {
			measured = max(measured, read.Prep)
		}
		got, at, slack := row.predicted(t)
		row.checkPinned(t, read.Host.Pinned)
		pool := float64(read.Pool)/float64(got) - 1
		if row.w.DeepSpeed == nil { // its requests are followed (TestReservedAccuracy)
			counted++
			if slack[0] <= pool && pool <= slack[1] {
				inside++
			}
		}
		percent := 100 * (float64(got)/float64(measured) - 1)
		fmt.Fprintf(&table, "%-52s %8.3f %8.3f %+7.3f%% %+8.2f pool %+.3f of %.3f  %s\n", read.Case, gib(got), gib(measured), percent, float64(got-measured)/(1<<20), pool, slack, at)
		off = append(off, math.Abs(percent))
		worst := rows.worst
		if wider, ok := rows.wider[read.Case]; ok {
			worst = wider
		} else if slices.Contains(rows.closer, read.Case) {
			worst /= 10
		}
		if !(math.Abs(percent) <= worst) {
			t.Errorf("%s: predicted %d B, measured %d B, off by %+.2f %%; the bound is %g %%", read.Case, got, measured, percent, worst)
		}
	}
	summary(t, &table, rows.name, off)
	slices.Sort(off)
	if len(off) < rows.least || off[len(off)/2] > rows.middle {
		t.Errorf("%d rows, the one in the middle off by %.3f %%", len(off), off[len(off)/2])
	}
	t.Logf("%s%d of %d pools in their range", table.String(), inside, counted)
	if rows.pools && 10*inside < 9*counted {
		t.Errorf("%d of %d pools are in their range", inside, counted)
	}
}

// checkPinned compares the pinned memory of parts and gradients with what was
// measured, if it was; Adam's states are pageable.
func (row *trainerRow) checkPinned(t *testing.T, measured int64) {
	t.Helper()
	if measured == 0 {
		return
	}
	graph, costs := costsOf(t, distConfig(t, row.model), row.w)
	if got := costs.HostBytes/row.w.World - 8*graph.ParamCount()/row.w.World; math.Abs(float64(got)/float64(measured)-1) > .005 {
		t.Errorf("%s: predicted %d B of pinned memory, measured %d B", row.Case, got, measured)
	}
}

// TestTrainerAccuracy predicts transformers' Trainer under Accelerate's FSDP2, HSDP, under DDP and
// on one GPU. GPT-2-XL under FSDP2 lacks rests of activations, whose requests are followed in one
// type only. Without the allocator's rests, the closer rows are off by up to 1.3 %.
func TestTrainerAccuracy(t *testing.T) {
	trainerRows{
		file: "trainer_h200.jsonl", name: "Trainer", read: newTrainerRow, least: 90, worst: .3, middle: .02, pools: true,
		wider: map[string]float64{"fsdp2:gpt2-xl:2:512:amp:4:0": .75, "one:qwen2.5-0.5b:1:2048:amp:1:0": .06},
		closer: []string{
			"one:qwen2.5-3b:2:2048:amp,gc:1:0", "one:qwen2.5-0.5b:2:512:amp,sgd:1:0", "one:qwen2.5-3b@18:2:1024:amp:1:0", "one:qwen3-8b@6:1:2048:amp:1:0",
			"ddp:qwen2.5-7b@6:2:1024:amp:2:0", "fsdp2:llama-3.1-8b:1:4096:amp,ac,r64,all:2:0", "fsdp2:phi-3-mini:2:1024:amp,r16,all:4:0",
		},
	}.check(t)
}

// TestTrainerIssue checks issue 37's rows, measured on four GPUs, within half a percent.
func TestTrainerIssue(t *testing.T) {
	for name, measured := range map[string]float64{
		"fsdp2:llama-3.2-3b:2:2048:amp,gpu:4:0":            29.76,
		"fsdp2:llama-3.1-8b:2:4096:amp,ac,gpu:4:0":         37.47,
		"fsdp2:llama-3.1-8b:2:2048:amp,ac,r16,all,gpu:4:0": 18.89,
		"ddp:llama-3.2-1b:2:2048:amp:4:0":                  21.841,
	} {
		row := newTrainerRow(t, name)
		got, at, _ := row.predicted(t)
		if off := 100 * (gib(got)/measured - 1); !(math.Abs(off) <= .5) {
			t.Errorf("%s: predicted %.3f GiB (%s), measured %.3f: off by %+.2f %%", name, gib(got), at, measured, off)
		}
	}
}
