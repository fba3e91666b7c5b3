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
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// stepRow is a run of measured/how/measure_step.py.
type stepRow struct {
	Case                string
	Steps, Evals, Saves []int64
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

// peaks are those of a step, an evaluation and a checkpoint, and the least of a step.
func (row *stepRow) peaks(t *testing.T) (step, evaluation, saving, least timeline.Peak) {
	t.Helper()
	_, table := costsOf(t, distConfig(t, row.model), row.w)
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	dev := gpu.Device(row.w.Mode)
	if row.w.Strategy == costmodel.DeviceMap {
		all := make([]*costmodel.Unit, len(table.Units))
		for i := range all {
			all[i] = &table.Units[i]
		}
		return timeline.DeviceMap(row.w.Mode, all, timeline.ResidentOn(table, 0, &dev, false)), evaluation, saving, least
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

// TestPredictSteps prints predictions of the cases in $PREDICT_STEPS, a file of one a line,
// as they are recorded before the cases are measured.
func TestPredictSteps(t *testing.T) {
	path := os.Getenv("PREDICT_STEPS")
	if path == "" {
		t.Skip("PREDICT_STEPS names no file")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(text)) {
		row := newStepRow(t, name)
		step, evaluation, saving, least := row.peaks(t)
		line, err := json.Marshal(map[string]any{
			"case": name, "step": step.Memory.Total(), "at": step.At, "eval": evaluation.Memory.Total(), "eval_at": evaluation.At, "save": saving.Memory.Total(), "least": least.Memory.Total(),
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(string(line))
	}
	_ = math.Abs
}
