package accuracy_test

import (
	"cmp"
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
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
)

// stepRow is a run of measured/how/measure_step.py.
type stepRow struct {
	Case                string
	Steps, Evals, Saves []int64
	States              struct{ CUDA, Paged int64 } // bytes of optimizer states
	trainerRow          `json:"-"`
}

// newStepRow reads what measure_trainer.py does not have; the rest is a row of that.
func newStepRow(t *testing.T, name string) stepRow {
	t.Helper()
	row := stepRow{Case: name, trainerRow: newTrainerRow(t, name)}
	parts := strings.Split(name, ":")
	opts := strings.Split(parts[4], ",")
	for _, opt := range opts {
		if n, err := strconv.ParseInt(strings.TrimPrefix(opt, "ev"), 10, 64); err == nil {
			row.w.EvalBatch = n
		}
	}
	if slices.Contains(opts, "met") {
		row.w.EvalSamples = 3 * row.w.EvalBatch * row.w.World
	}
	row.w.Compile = slices.Contains(opts, "compile")
	row.w.Liger = slices.Contains(opts, "liger")
	if parts[0] == "bwd" {
		row.w.Preset, row.w.BuiltOn, row.w.OptimizerInBackward = "", "", true
		if row.w.Strategy = costmodel.FSDP; row.w.World == 1 {
			row.w.Strategy = costmodel.DeviceMap
		}
	}
	return row
}

// peaks are the peaks of a step, an evaluation and a checkpoint, and a step's least.
func (row *stepRow) peaks(t *testing.T) (step, evaluation, saving, least timeline.Peak) {
	t.Helper()
	_, table := costsOf(t, distConfig(t, row.model), row.w)
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	dev := gpu.Device(row.w.Mode)
	if row.w.Strategy == costmodel.DeviceMap {
		all := make([]*costmodel.Unit, len(table.Units))
		for i := range all {
			all[i] = &table.Units[i]
		}
		return timeline.DeviceMap(row.w.Mode, all, timeline.ResidentOn(table, 0, &dev, false)).Peak(), evaluation, saving, least
	}
	if least = step; table.Least != nil {
		least = replicaPeak(t, table.Least, &dev)
	}
	evaluates, saves := table.Evaluation, table.Saving
	table.Evaluation, table.Saving = nil, 0
	step = replicaPeak(t, table, &dev)
	if table.Evaluation = evaluates; evaluates != nil {
		evaluation = replicaPeak(t, table, &dev)
	}
	table.Evaluation = nil
	if table.Saving = saves; saves > 0 {
		for i := range table.Units { // as if a step took nothing
			table.Units[i].Layers, table.Units[i].StepTransient, table.Units[i].LastBackward = nil, 0, 0
		}
		table.Groups = nil
		saving = replicaPeak(t, table, &dev)
	}
	return step, evaluation, saving, least
}

// checkStates compares the optimizer's states on the GPU and in unified memory with measurements.
func (row *stepRow) checkStates(t *testing.T, measured struct{ CUDA, Paged int64 }) {
	t.Helper()
	if measured.CUDA == 0 {
		return
	}
	_, table := costsOf(t, distConfig(t, row.model), row.w)
	var states int64
	for i := range table.Units {
		states += table.Units[i].OptimizerState
	}
	// The rows count two maps of 1 KiB, which all tensors share, once for each.
	if off := float64(states)/float64(measured.CUDA) - 1; !(-.045 <= off && off <= .001) {
		t.Errorf("%s: predicted %d B of states on the GPU, measured %d B", row.Case, states, measured.CUDA)
	}
	paged := costmodel.Messagef("%v of optimizer states are in CUDA's unified memory", costmodel.Bytes(measured.Paged)).String()
	says := slices.ContainsFunc(table.Warnings, func(warning costmodel.Message) bool { return strings.HasPrefix(warning.String(), paged) })
	if measured.Paged > 0 && !says {
		t.Errorf("%s: no warning says %q: %v", row.Case, paged, table.Warnings)
	}
}

// TestStepAccuracy predicts transformers' Trainer in a step and between steps: evaluations,
// checkpoints, Liger, torch.compile, and an optimizer in backward. Qwen2.5-0.5B lacks the
// allocator's rests, which are followed neither in a backward that steps (119 MiB by a replay of
// its requests) nor under autocast. A step after an evaluation of an untied model under FSDP2 takes
// more than other steps, less than the evaluation; the cause is not known.
func TestStepAccuracy(t *testing.T) {
	const worst, middle, saves, compiles = .55, .03, .2, .5
	closer := map[string]float64{"one:qwen2.5-0.5b:1:512:ev4,met:1:0": .08, "one:llama-3.2-1b@4:1:128:save:1:0": .03}
	var table strings.Builder
	var off []float64
	judge := func(name, what string, got, measured int64, bound float64) float64 {
		percent := 100 * (float64(got)/float64(measured) - 1)
		fmt.Fprintf(&table, "%-48s %-5s %8.3f %8.3f %+7.3f%% %+8.2f\n", name, what, gib(got), gib(measured), percent, float64(got-measured)/(1<<20))
		if !(math.Abs(percent) <= bound) {
			t.Errorf("%s, %s: predicted %d B, measured %d B, off by %+.2f %%; the bound is %g %%", name, what, got, measured, percent, bound)
		}
		return math.Abs(percent)
	}
	for _, read := range fixtures.Must(fixtures.Rows[stepRow]("../../../fixtures/measured/step_h200.jsonl"))(t) {
		row := newStepRow(t, read.Case)
		step, evaluation, saving, least := row.peaks(t)
		row.checkStates(t, read.States)
		measured := slices.Max(slices.Concat(read.Steps, read.Evals))
		switch {
		case strings.HasPrefix(read.Case, "ddp"), strings.Contains(read.Case, ":amp,compile"): // a range alone: with bf16=True logits and their gradients are fp32
			if got := least.Memory.Total(); got > measured || step.Memory.Total() < measured {
				t.Errorf("%s: %d B are not between %d and %d", read.Case, measured, got, step.Memory.Total())
			}
		case row.w.Compile:
			judge(read.Case, "graph", least.Memory.Total(), measured, compiles)
		default:
			off = append(off, judge(read.Case, "peak", max(step.Memory.Total(), evaluation.Memory.Total()), measured, cmp.Or(closer[read.Case], worst)))
		}
		if len(read.Saves) > 0 && row.w.Strategy == costmodel.FSDP {
			judge(read.Case, "save", saving.Memory.Total(), slices.Max(read.Saves), saves)
		}
	}
	summary(t, &table, "Steps", off)
	slices.Sort(off)
	if len(off) < 36 || off[len(off)/2] > middle {
		t.Errorf("%d rows, the one in the middle off by %.3f %%", len(off), off[len(off)/2])
	}
	t.Log(table.String())
}

// TestPredictSteps prints predictions of the cases in $PREDICT_STEPS, a file of one a line, before
// they are measured.
func TestPredictSteps(t *testing.T) {
	path := os.Getenv("PREDICT_STEPS")
	if path == "" {
		t.Skip("PREDICT_STEPS names no file")
	}
	text := fixtures.Must(os.ReadFile(path))(t)
	for name := range strings.FieldsSeq(string(text)) {
		row := newStepRow(t, name)
		step, evaluation, saving, least := row.peaks(t)
		line, err := json.Marshal(map[string]any{
			"case": name, "step": step.Memory.Total(), "at": step.At, "eval": evaluation.Memory.Total(), "eval_at": evaluation.At, "save": saving.Memory.Total(), "least": least.Memory.Total(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(string(line))
	}
}
