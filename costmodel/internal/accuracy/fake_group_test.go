package accuracy_test

import (
	"bufio"
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
	"github.com/devmap-dev/devmap/fixtures"
)

// fakeRow is one rank of a run of many, measured on one GPU under torch's fake
// process group (measured/how/measure_fake.py).
type fakeRow struct {
	distRow
	rank int
}

// fakeRows are the rows of a file.
func fakeRows(t *testing.T, file string) []fakeRow {
	t.Helper()
	return rowsOf(t, file, newFakeRow)
}

// rowsOf are the rows of a file of ranks.
func rowsOf[row any](t *testing.T, file string, read func(*testing.T, distRank) row) (rows []row) {
	t.Helper()
	f := fixtures.Must(os.Open(file))(t)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var rank distRank
		if err := json.Unmarshal(s.Bytes(), &rank); err != nil {
			t.Fatal(file, err)
		}
		rows = append(rows, read(t, rank))
	}
	return rows
}

// newFakeRow reads engine:model:batch:seq:opts:world:rank.
func newFakeRow(t *testing.T, rank distRank) fakeRow {
	t.Helper()
	parts := strings.Split(rank.Case, ":")
	opts := strings.Split(parts[4], ",")
	number := func(text string) int64 { return caseNumber(t, rank.Case, text) }
	r := fakeRow{newDistRow(t, []distRank{rank}), int(number(parts[6]))}
	r.w.World = number(parts[5])
	switch r.engine {
	case "zero1", "zero2", "zero3":
		r.w.Strategy, r.w.Precision = costmodel.Strategy(r.engine), ""
		r.zeroSettings(t, opts, number)
	case "lora-fsdp2":
		r.w.Strategy, r.w.Precision = costmodel.FSDP, costmodel.BF16True
	case "lora-hsdp":
		r.w.Strategy, r.w.Precision = costmodel.HSDP, costmodel.BF16True
	case "lora-ddp": // a group of one: DDP holds as much in any
		r.w.Strategy, r.w.Precision, r.w.World, r.w.LoRAPrecision = costmodel.DDP, costmodel.BF16True, 2, value.AdaptersBF16
	case "lora-1f1b":
		r.w.Strategy, r.w.Schedule, r.w.LoRAPrecision = costmodel.Pipeline, costmodel.OneFOneB, value.AdaptersBF16
	}
	for _, o := range opts {
		if n, ok := strings.CutPrefix(o, "ga"); ok {
			r.w.MicroBatches = number(n)
			r.w.Batch *= r.w.MicroBatches
		}
		if n, ok := strings.CutPrefix(o, "mb"); ok {
			r.w.MicroBatches = number(n)
		}
		if n, err := strconv.ParseInt(strings.TrimPrefix(o, "r"), 10, 64); err == nil {
			r.w.LoRARank, r.w.LoRATargets = n, []string{"q_proj", "v_proj"}
		}
	}
	if slices.Contains(opts, "all") {
		r.w.LoRATargets = []string{"all-linear"}
	}
	if slices.Contains(opts, "fp32") || slices.Contains(opts, "a32") {
		r.w.LoRAPrecision = value.AdaptersFP32
	}
	return r
}

// predictFake is the allocated peak of the row's rank, and its moment.
func predictFake(t *testing.T, r *fakeRow) (int64, string) {
	t.Helper()
	switch {
	case r.w.Strategy == costmodel.Pipeline:
		p := predictPipeline(t, &r.distRow).Devices[r.rank].Predicted
		return p.PeakAllocatedBytes, p.PeakAt
	case r.w.Strategy.Traits().Sharded && r.w.Strategy != costmodel.Zero3:
		p := predictSharded(t, &r.distRow)
		return p.Memory.Total(), p.At
	}
	_, table := costsOf(t, distConfig(t, r.model), r.w)
	gpu := fixtures.Must(catalogue.Find("h200-141gb"))(t)
	dev := gpu.Device(r.w.Mode)
	p := replicaPeak(t, table, &dev)
	return p.Memory.Total(), p.At
}

// TestFakeGroupAccuracy predicts one rank of runs on 4 and 8 GPUs ("make
// accuracy"), DeepSpeed's three stages among them.
func TestFakeGroupAccuracy(t *testing.T) {
	rows := slices.Concat(fakeRows(t, "../../../fixtures/measured/fake_group_h200.jsonl"), fakeRows(t, "../../../fixtures/measured/fake_group_lora.jsonl"))
	judgeFake(t, rows, "fake group", .05, .01)
}

// judgeFake predicts rows, prints each, and bounds the largest and the median error, in percent.
func judgeFake(t *testing.T, rows []fakeRow, name string, worst, middle float64) {
	t.Helper()
	var table strings.Builder
	var off []float64
	fmt.Fprintf(&table, "\n%-60s rank  predicted   measured    error  MiB off  at\n", "row (GiB)")
	for i := range rows {
		r := &rows[i]
		got, at := predictFake(t, r)
		measured := r.ranks[0].Peak
		percent := 100 * (float64(got)/float64(measured) - 1)
		fmt.Fprintf(&table, "%-60s %4d %10.3f %10.3f %+7.3f%% %+8.2f  %s\n", r.name, r.rank,
			gib(got), gib(measured), percent, float64(got-measured)/(1<<20), at)
		off = append(off, math.Abs(percent))
		if math.Abs(percent) > worst {
			t.Errorf("%s: predicted %d B, measured %d B, off by %+.2f %%; the bound is %g %%", r.name, got, measured, percent, worst)
		}
	}
	summary(t, &table, name, off)
	slices.Sort(off)
	if len(off) == 0 || off[len(off)/2] > middle {
		t.Errorf("%d rows of which the one in the middle is off by more than %g %%", len(off), middle)
	}
	t.Log(table.String())
}
