package main

import (
	"fmt"
	"io"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// tables prints what people read.
type tables struct {
	w      io.Writer
	g      *modelgraph.Graph
	work   costmodel.Workload
	colour bool
}

func newTable(w io.Writer, g *modelgraph.Graph, work costmodel.Workload) *tables {
	return &tables{w: w, g: g, work: work, colour: terminal(w) && os.Getenv("NO_COLOR") == ""}
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // a file descriptor fits an int
}

// category is one part of a device's peak: its heading, the letter and colour
// of its stretch in the bar.
type category struct {
	name   string
	letter rune
	colour text.Color
	of     func(*devicemap.Predicted) int64
}

var categories = []category{
	{"weights", 'w', text.FgBlue, func(p *devicemap.Predicted) int64 { return p.ParamsBytes }},
	{"gradients", 'g', text.FgGreen, func(p *devicemap.Predicted) int64 { return p.GradsBytes }},
	{"optimizer", 'o', text.FgCyan, func(p *devicemap.Predicted) int64 { return p.OptimizerStateBytes }},
	{"activations", 'a', text.FgYellow, func(p *devicemap.Predicted) int64 { return p.ActivationsBytes }},
	{"KV cache", 'k', text.FgMagenta, func(p *devicemap.Predicted) int64 { return p.KVCacheBytes }},
	{"workspace", 's', text.FgRed, func(p *devicemap.Predicted) int64 { return p.WorkspaceBytes }},
	{"overhead", 'x', text.FgHiBlack, func(p *devicemap.Predicted) int64 { return p.OverheadBytes }},
}

// devices prints a row per GPU: what runs there, the bytes at its peak by
// category, a bar of its budget, and what is left. Categories that no GPU has
// are left out.
func (t *tables) devices(m devicemap.Map, ds []devicemap.Prediction) {
	used := make([]bool, len(categories))
	for c := range categories {
		for d := range ds {
			used[c] = used[c] || categories[c].of(&ds[d].Predicted) > 0
		}
	}
	var most int64
	for d := range ds {
		most = max(most, ds[d].Predicted.PeakAllocatedBytes+ds[d].Predicted.OverheadBytes)
	}
	unit := scaleFor(most)
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.Style().Options.DrawBorder = false
	w.Style().Format.Header = text.FormatDefault
	w.AppendHeader(deviceHead(used))
	w.SetColumnConfigs(deviceColumns(used))
	for d := range ds {
		p := &ds[d]
		row := table.Row{d, t.runs(m, devicemap.Device(d))}
		for c := range categories {
			if used[c] {
				row = append(row, unit.print(categories[c].of(&p.Predicted)))
			}
		}
		w.AppendRow(append(row, unit.print(p.Predicted.PeakAllocatedBytes), t.bar(p, most), unit.print(p.HeadroomBytes)))
	}
	t.printf("%s, %s (%s)\n%s\n%s\n", t.g.Name, t.doing(), unit.name, w.Render(), t.legend(used))
	for _, tier := range []devicemap.Device{devicemap.CPU, devicemap.Disk} {
		if s := t.runs(m, tier); s != "nothing" {
			t.printf("on the %v: %s\n", tier, s)
		}
	}
}

func deviceHead(used []bool) table.Row {
	head := table.Row{"GPU", "runs"}
	for c := range categories {
		if used[c] {
			head = append(head, categories[c].name)
		}
	}
	return append(head, "peak", "share of its budget", "headroom")
}

func deviceColumns(used []bool) []table.ColumnConfig {
	const runs = 44 // wide enough for an embedding, a run of blocks and a head
	configs := []table.ColumnConfig{{Number: 2, WidthMax: runs, WidthMaxEnforcer: text.WrapSoft}}
	n := len(deviceHead(used))
	for c := 3; c <= n; c++ {
		if c != n-1 { // the bar
			configs = append(configs, table.ColumnConfig{Number: c, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	return configs
}

// scale is the one unit of a table.
type scale struct {
	name string
	size float64
}

// scaleFor picks the unit by the largest figure.
func scaleFor(most int64) scale {
	if most >= 1<<30 {
		return scale{"GiB", 1 << 30}
	}
	return scale{"MiB", 1 << 20}
}

func (s scale) print(b int64) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(b)/s.size)
}

// doing is the workload in a few words.
func (t *tables) doing() string {
	w := &t.work
	switch w.Mode {
	case costmodel.Load:
		return fmt.Sprintf("weights only, %s", w.Precision)
	case costmodel.Train:
		s := fmt.Sprintf("training %d × %d tokens, %s, %s", w.Batch, w.Seq, w.Precision, w.Optimizer)
		if w.Recompute != costmodel.RecomputeNone {
			s += ", recompute " + string(w.Recompute)
		}
		return s
	case costmodel.Infer:
	}
	s := fmt.Sprintf("inference of %d × %d tokens, %s", w.Batch, w.Seq, w.Precision)
	if w.NewTokens > 0 {
		s += fmt.Sprintf(", %d new tokens", w.NewTokens)
	}
	return s
}

// certificate is the line that says how good the map is.
func (t *tables) certificate(s *planner.Solution) {
	d := &s.Devices[s.Bottleneck]
	t.printf("largest share %.2f%% (GPU %d, %s) · imbalance %.3f · lower bound %.2f%% (%s) · %s\n",
		100*s.Value, s.Bottleneck, sized(d.Predicted.PeakAllocatedBytes+d.Predicted.OverheadBytes, d.Budget()),
		s.Imbalance(), 100*s.LowerBound, s.Bound, s.Status)
}

// explain says what binds.
func (t *tables) explain(s *planner.Solution) {
	d := &s.Devices[s.Bottleneck]
	t.printf("GPU %d binds at its peak, %q: %s\n", s.Bottleneck, d.Predicted.PeakAt, t.runs(s.Map, devicemap.Device(s.Bottleneck)))
	t.printf("the bound is tight by: %s; %d targets were tried\n", s.Bound, s.Probes)
}

// warnings are footnotes.
func (t *tables) warnings(ws []string) {
	for _, w := range ws {
		t.printf("note: %s\n", w)
	}
}

func (t *tables) printf(format string, args ...any) {
	fmt.Fprintf(t.w, format, args...) //nolint:errcheck // nothing to do about a closed stderr
}
