package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/strategy"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// strategies is a row per strategy and runtime, the best first, and why the
// others have none.
func (t *tables) strategies(rows []strategy.Row) {
	answered := slices.DeleteFunc(slices.Clone(rows), func(r strategy.Row) bool { return r.Refused != nil })
	if len(answered) > 0 {
		t.work = answered[0].Resolved
		t.work.MicroBatches = 1 // each row has its own
		t.work.Precision = usual(answered)
		t.printf("%s, %s (GiB)\n%s\n", out.Cell(t.g.Name), t.doing(), trimmed(strategyTable(answered, t.work.Precision)))
	}
	for _, line := range folded(refusals(rows), ", ") {
		t.printf("%s: %s\n", line[0], line[1])
	}
}

// refusals are the rows without an answer: who, and why.
func refusals(rows []strategy.Row) [][]string {
	var out [][]string
	for i := range rows {
		if r := &rows[i]; r.Refused != nil {
			out = append(out, []string{fmt.Sprintf("%s (%s)", described(&r.Workload), r.Workload.Runtime), ask.ErrorText(r.Refused)})
		}
	}
	return out
}

// folded joins rows that differ in their first cell alone.
func folded(rows [][]string, sep string) [][]string {
	var out [][]string
	for _, row := range rows {
		i := slices.IndexFunc(out, func(o []string) bool { return slices.Equal(o[1:], row[1:]) })
		if i < 0 {
			out = append(out, slices.Clone(row))
			continue
		}
		out[i][0] += sep + row[0]
	}
	return out
}

// usual is the precision of most rows: DeepSpeed's default is one of its own.
func usual(rows []strategy.Row) costmodel.Precision {
	count := make(map[costmodel.Precision]int)
	best := rows[0].Resolved.Precision
	for i := range rows {
		p := rows[i].Resolved.Precision
		count[p]++
		if count[p] > count[best] {
			best = p
		}
	}
	return best
}

func strategyTable(rows []strategy.Row, usual costmodel.Precision) string {
	w := newWriter()
	w.AppendHeader(table.Row{"strategy", "runtime", "fits", "largest\npeak", "peak of each GPU", "head-\nroom", "sent\na step", "step", "tokens\na step"})
	for _, cells := range alike(rows, usual) {
		var row table.Row
		for _, cell := range cells {
			row = append(row, cell)
		}
		w.AppendRow(row)
	}
	var configs []table.ColumnConfig
	for c := 4; c <= 9; c++ {
		if c != 5 {
			configs = append(configs, table.ColumnConfig{Number: c, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	w.SetColumnConfigs(configs)
	return w.Render()
}

// alike are the cells of the rows, with the precision of those that have
// another than usual. Those with the same figures share a line: strategies of
// one runtime, and runtimes of one strategy.
func alike(rows []strategy.Row, usual costmodel.Precision) [][]string {
	const strategies, runtimes = 0, 1
	var cells [][]string
	for i := range rows {
		row := strategyRow(&rows[i])
		if p := rows[i].Resolved.Precision; p != usual {
			row[runtimes] += ", " + string(p)
		}
		cells = append(cells, row)
	}
	cells = folded(cells, " / ")
	for _, c := range cells { // the cell that is folded stands first
		c[strategies], c[runtimes] = c[runtimes], c[strategies]
	}
	cells = folded(cells, " / ")
	for _, c := range cells {
		c[strategies], c[runtimes] = c[runtimes], c[strategies]
	}
	return cells
}

func strategyRow(r *strategy.Row) []string {
	fits, step := "no", "–"
	if r.Fits() {
		fits = "yes"
	}
	if r.StepSeconds != nil {
		step = seconds(*r.StepSeconds)
	}
	peaks := peaks(r)
	return []string{
		described(&r.Resolved), string(r.Resolved.Runtime), fits, gib(slices.Max(peaks)), runLengths(peaks),
		gib(r.Headroom()), gib(r.Communication), step, strconv.FormatInt(r.Tokens(), 10),
	}
}

// peaks are the allocated peaks of the GPUs, in bytes.
func peaks(r *strategy.Row) []int64 {
	out := []int64{}
	for i := range r.Solution.Devices {
		out = append(out, r.Solution.Devices[i].Predicted.PeakAllocatedBytes)
	}
	return out
}

// described is a strategy with its schedule.
func described(w *costmodel.Workload) string {
	s := string(w.Strategy)
	if w.Strategy.Traits().Staged {
		s += fmt.Sprintf(" %s, %s", w.Schedule, plural(max(1, w.MicroBatches), "micro-batch"))
	}
	return s
}

// runLengths prints like neighbours once: 4 × 72.97, or 17.2 12.4 13.3.
func runLengths(bytes []int64) string {
	var out []string
	for i := 0; i < len(bytes); {
		end := i + 1
		for end < len(bytes) && gib(bytes[end]) == gib(bytes[i]) {
			end++
		}
		if end > i+1 {
			out = append(out, fmt.Sprintf("%d × %s", end-i, gib(bytes[i])))
		} else {
			out = append(out, gib(bytes[i]))
		}
		i = end
	}
	const most = 8
	if len(out) > most {
		out = append(out[:most], "…")
	}
	return strings.Join(out, " ")
}

func gib(b int64) string { return scale{"GiB", 1 << 30, 2}.print(b) }

// seconds prints a time with three digits that say something.
func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.3g ms", 1e3*s)
	}
	return fmt.Sprintf("%.3g s", s)
}
