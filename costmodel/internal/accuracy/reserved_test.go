package accuracy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestReservedAccuracy checks the pools of rows with followed requests ("make accuracy"): seven of
// eight are within their ranges, 5 % of the peak wide, 12 % for ZeRO 3.
func TestReservedAccuracy(t *testing.T) {
	const files = "../../../fixtures/measured/"
	rows := slices.Concat(fakeRows(t, files+"fake_group_h200.jsonl"), fakeRows(t, files+"fake_group_lora.jsonl"), fakeRows(t, files+"fake_group_zero.jsonl"))
	all := make([]distRow, 0, len(rows))
	for i := range rows {
		all = append(all, rows[i].distRow)
	}
	judged := make(map[string]*pools)
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-56s allocated reserved followed     off  (%% of the peak)\n", "row (GiB)")
	for _, row := range append(all, distRows(t)...) {
		_, costs := costsOf(t, distConfig(t, row.model), row.w)
		if costs.Marks == nil || row.w.Strategy == costmodel.DeviceMap || strings.Contains(row.name, "noreshard") { // which a plan does not set
			continue
		}
		kind := string(row.w.Strategy)
		if judged[kind] == nil {
			judged[kind] = new(pools)
		}
		judged[kind].add(&table, &row, costs)
	}
	for _, kind := range []string{"zero1", "zero2", "zero3", "fsdp", "hsdp"} {
		pool := judged[kind]
		fmt.Fprintf(&table, "%-6s %3d rows, %d not followed; %d within the range\n", kind, pool.rows, pool.rows-pool.followed, pool.used)
		slices.Sort(pool.widths)
		width := pool.widths[len(pool.widths)/2]
		if pool.used*8 < pool.followed*7 || width > .055 && kind != "zero3" || width > .13 {
			t.Errorf("%s: %d of %d rows within the range, whose median is %.3f of the peak wide", kind, pool.used, pool.followed, width)
		}
	}
	t.Log(table.String())
}

// pools counts rows of a kind.
type pools struct {
	rows, followed, used int
	widths               []float64 // ranges, as parts of the peak
}

// mostOf is the least and the most bytes that a GPU with all units reserves by its requests; 0 if
// they are not followed.
func mostOf(costs *costmodel.Table) (reserved [2]int64) {
	if costs.Marks == nil {
		return reserved
	}
	for _, mark := range costs.Marks(nil, true) {
		reserved = [2]int64{max(reserved[0], mark[0]), max(reserved[1], mark[1])}
	}
	return reserved
}

func (pool *pools) add(table *strings.Builder, row *distRow, costs *costmodel.Table) {
	pool.rows++
	reserved := mostOf(costs)
	if reserved[1] == 0 {
		fmt.Fprintf(table, "%-56s not followed\n", row.name)
		return
	}
	pool.followed++
	measured := &row.ranks[0]
	peak := float64(measured.Peak)
	pool.widths = append(pool.widths, costs.Followed[1]-costs.Followed[0]+float64(reserved[1]-reserved[0])/peak)
	least, most := float64(measured.Reserved-reserved[0])/peak, float64(measured.Reserved-reserved[1])/peak
	out := "out"
	if least >= costs.Followed[0] && most <= costs.Followed[1] {
		pool.used++
		out = ""
	}
	fmt.Fprintf(table, "%-56s %9.2f %8.2f %8.2f %+7.2f %s\n", row.name, gib(measured.Peak), gib(measured.Reserved), gib(reserved[1]), 100*most, out)
}

// TestReservedPredicted compares predictions for 30 rows (reserved_predicted.jsonl, committed
// before the machine was started) with their measurements (fake_group_reserved.jsonl), within the
// plan's range of that time.
func TestReservedPredicted(t *testing.T) {
	said := make(map[string]int64)
	type row struct {
		Case     string
		Reserved int64
	}
	for _, row := range fixtures.Must(fixtures.Rows[row]("../../../fixtures/measured/reserved_predicted.jsonl"))(t) {
		said[row.Case] = row.Reserved
	}
	var table strings.Builder
	all, used := 0, 0
	for _, row := range fakeRows(t, "../../../fixtures/measured/fake_group_reserved.jsonl") {
		measured, out := &row.ranks[0], "out"
		off := float64(measured.Reserved-said[row.name]) / float64(measured.Peak)
		if off >= -.04 && off <= .095 {
			used++
			out = ""
		}
		all++
		fmt.Fprintf(&table, "%-48s %9.2f %8.2f %8.2f %+7.2f %s\n", row.name, gib(measured.Peak), gib(measured.Reserved), gib(said[row.name]), 100*off, out)
	}
	if all < 30 || used < 28 {
		t.Errorf("of %d rows %d were predicted within the range", all, used)
	}
	t.Log("\nallocated, reserved, predicted (GiB), off (% of the peak)\n" + table.String())
}

// followedRow is the reserved bytes of a row's requests; 0 if they are not followed.
func followedRow(t *testing.T, row *distRow) int64 {
	t.Helper()
	_, costs := costsOf(t, distConfig(t, row.model), row.w)
	return mostOf(costs)[1]
}
