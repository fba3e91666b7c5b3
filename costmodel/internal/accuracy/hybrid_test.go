package accuracy_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// hybridRow is one rank of a pipeline with several GPUs a stage, as measure_hybrid.py ran it:
// model:batch:seq:opts:pp:dp:tp:stage.
type hybridRow struct {
	distRow
	stage, gpus int
}

func newHybridRow(t *testing.T, rank distRank) hybridRow {
	t.Helper()
	parts := strings.Split(strings.TrimPrefix(rank.Case, "hybrid:"), ":")
	number := func(i int) int64 { return caseNumber(t, rank.Case, parts[i]) }
	opts := strings.Split(parts[3], ",")
	pp, dp, tp := number(4), number(5), number(6)
	row := hybridRow{distRow: distRow{name: rank.Case, engine: "hybrid", model: parts[0], ranks: []distRank{rank}}, stage: int(number(7)), gpus: int(dp * tp)}
	row.w = costmodel.Workload{
		Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, Batch: number(1), MicroBatches: rank.MicroBatches, Seq: number(2),
		World: pp * dp * tp, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, LossOnly: true,
	}
	for _, opt := range opts {
		if part, ok := strings.CutPrefix(opt, "shard"); ok {
			row.w.ShardDegree, _ = strconv.ParseInt(part, 10, 64)
		}
	}
	if dp > 1 && slices.Contains(opts, "replicate") {
		row.w.ShardDegree = 1
	}
	if err := row.w.DP.Set(parts[5]); err != nil {
		t.Fatal(err)
	}
	if err := row.w.TP.Set(parts[6]); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(opts, "ckpt") {
		row.w.Recompute = costmodel.RecomputeFull
	}
	if slices.Contains(opts, "gpipe") {
		row.w.Schedule = costmodel.GPipe
	}
	if slices.Contains(opts, "mp") {
		row.w.Precision = costmodel.BF16Mixed
	}
	return row
}

// predict is the predicted memory of the row's stage.
func (row *hybridRow) predict(t *testing.T) devicemap.Predicted {
	t.Helper()
	g, table := costsOf(t, stageConfig(t, row.model), row.w)
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	topo := &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu.Device(row.w.Mode)}, int(row.w.World))}
	placed := row.place(g)
	for unit := range placed {
		placed[unit] *= devicemap.Device(row.gpus)
	}
	report := devicemap.Check(g, table, topo, placed.Flatten(g), nil)
	for _, fault := range report.Faults {
		if fault.Kind != "does-not-fit" {
			t.Error(row.name, fault)
		}
	}
	return report.Devices[row.stage*row.gpus].Predicted
}

// TestHybridAccuracy predicts ranks of pipelines with several GPUs a stage
// (measured/how/measure_hybrid.py); fixtures/measured has predictions from before the measurements.
func TestHybridAccuracy(t *testing.T) {
	var table strings.Builder
	var off []float64
	fmt.Fprintf(&table, "\n%-56s  predicted   measured    error  MiB off  at\n", "row (GiB)")
	for _, row := range rowsOf(t, "../../../fixtures/measured/fake_group_hybrid.jsonl", newHybridRow) {
		got, measured := row.predict(t), row.ranks[0].Peak
		percent := 100 * (float64(got.PeakAllocatedBytes)/float64(measured) - 1)
		fmt.Fprintf(&table, "%-56s %10.3f %10.3f %+7.3f%% %+8.2f  %s\n", row.name, gib(got.PeakAllocatedBytes), gib(measured), percent, float64(got.PeakAllocatedBytes-measured)/(1<<20), got.PeakAt)
		off = append(off, math.Abs(percent))
		if math.Abs(percent) > hybridBound {
			t.Errorf("%s: predicted %d B, measured %d B, off by %+.2f %%; the bound is %g %%", row.name, got.PeakAllocatedBytes, measured, percent, hybridBound)
		}
	}
	summary(t, &table, "stages of several GPUs", off)
	t.Log(table.String())
}

// hybridBound is the largest error in percent.
const hybridBound = .5
