package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// strategies is a row per strategy and runtime, the best first, and why the
// others have none.
func (t *tables) strategies(rows []strategy.Row) {
	answered := slices.DeleteFunc(slices.Clone(rows), func(r strategy.Row) bool { return r.Refused != nil })
	if len(answered) > 0 {
		t.work = answered[0].Resolved
		t.work.MicroBatches = 1 // each row has its own
		t.printf("%s, %s (GiB)\n%s\n", cell(t.g.Name), t.doing(), trimmed(strategyTable(answered)))
	}
	for i := range rows {
		if r := &rows[i]; r.Refused != nil {
			t.printf("%s (%s): %v\n", described(&r.Workload), r.Workload.Runtime, r.Refused)
		}
	}
}

func strategyTable(rows []strategy.Row) string {
	w := newWriter()
	w.AppendHeader(table.Row{"strategy", "runtime", "fits", "largest\npeak", "peak of each GPU", "head-\nroom", "sent\na step", "step", "tokens\na step"})
	for i := range rows {
		w.AppendRow(strategyRow(&rows[i]))
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

func strategyRow(r *strategy.Row) table.Row {
	fits, step := "no", "–"
	if r.Fits() {
		fits = "yes"
	}
	if r.StepSeconds != nil {
		step = seconds(*r.StepSeconds)
	}
	peaks := r.Peaks()
	return table.Row{
		described(&r.Resolved), r.Resolved.Runtime, fits, gib(slices.Max(peaks)), runLengths(peaks),
		gib(r.Headroom()), gib(r.Communication), step, r.Tokens(),
	}
}

// described is a strategy with its schedule.
func described(w *costmodel.Workload) string {
	s := string(w.Strategy)
	if w.Strategy == costmodel.Pipeline {
		s += fmt.Sprintf(" %s, %s", w.Schedule, plural(max(1, w.MicroBatches), "part"))
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
