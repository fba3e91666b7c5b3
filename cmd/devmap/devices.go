package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/planner/devicemap"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// deviceTable is a row per GPU: what runs there, the bytes at its peak by
// category, a bar of its budget, and what is left. Categories that no GPU has
// are left out.
type deviceTable struct {
	*tables
	m     devicemap.Map
	ds    []devicemap.Prediction
	shown []*category
	most  int64 // bytes of the device that needs most: the length of a whole bar
	unit  scale
}

func (t *tables) devices(m devicemap.Map, ds []devicemap.Prediction) {
	dt := &deviceTable{tables: t, m: m, ds: ds}
	for i := range categories {
		if slices.ContainsFunc(ds, func(d devicemap.Prediction) bool { return categories[i].of(&d.Predicted) > 0 }) {
			dt.shown = append(dt.shown, &categories[i])
		}
	}
	for d := range ds {
		dt.most = max(dt.most, ds[d].Predicted.PeakAllocatedBytes+ds[d].Predicted.OverheadBytes)
	}
	dt.unit = scaleFor(dt.most)
	t.printf("%s, %s%s (%s)\n%s\n%s", out.Cell(t.g.Name), t.doing(), t.how(), dt.unit.name, trimmed(dt.render()), out.Block(dt.legend()))
	for _, tier := range []devicemap.Device{devicemap.CPU, devicemap.Disk, devicemap.Nowhere} {
		if s := t.runs(m, tier); m != nil && s != nothing {
			t.printf("on %s: %s\n", tierName(tier), s)
		}
	}
}

func tierName(tier devicemap.Device) string {
	if tier == devicemap.Nowhere {
		return "no single device, not counted"
	}
	return "the " + tier.String()
}

func (t *deviceTable) render() string {
	w := newWriter()
	w.AppendHeader(t.head())
	for d := 0; d < len(t.ds); {
		end := d + 1
		for end < len(t.ds) && t.idle(d, end) {
			end++
		}
		w.AppendRow(t.row(d, end))
		d = end
	}
	w.SetColumnConfigs(t.columns(0))
	narrow := text.LongestLineLen(w.Render())
	runs := 0 // the longest run of all
	for d := range t.ds {
		runs = max(runs, text.StringWidth(t.runs(t.m, devicemap.Device(d))))
	}
	if over := narrow - t.width; over > 0 {
		const least = 16
		w.SetColumnConfigs(t.columns(max(least, runs-over)))
	}
	return w.Render()
}

// newWriter is a table without a frame and without lines between its columns.
func newWriter() table.Writer {
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.Style().Options.DrawBorder = false
	w.Style().Options.SeparateColumns = false
	w.Style().Format.Header = text.FormatDefault
	w.Style().Format.HeaderVAlign = text.VAlignBottom
	return w
}

// trimmed takes the blanks off the ends of lines.
func trimmed(s string) out.Block {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return out.Block(strings.Join(lines, "\n"))
}

// idle reports whether devices a and b both hold nothing and are alike, so
// that one row serves both.
func (t *deviceTable) idle(a, b int) bool {
	x, y := &t.ds[a], &t.ds[b]
	return x.Units == 0 && y.Units == 0 && x.Budget() == y.Budget()
}

func (t *deviceTable) head() table.Row {
	head := table.Row{"GPU", "runs"}
	for _, c := range t.shown {
		head = append(head, c.heading)
	}
	return append(head, "peak", "share of its budget", "head-\nroom")
}

// row is that of device d, or of the idle ones from d up to end.
func (t *deviceTable) row(d, end int) table.Row {
	p := &t.ds[d]
	name := fmt.Sprint(d)
	if end > d+1 {
		name = fmt.Sprintf("%d–%d", d, end-1)
	}
	row := table.Row{name, t.runs(t.m, devicemap.Device(d))}
	for _, c := range t.shown {
		row = append(row, t.unit.print(c.of(&p.Predicted)))
	}
	return append(row, t.unit.print(p.Predicted.PeakAllocatedBytes), t.bar(p), t.unit.print(p.HeadroomBytes))
}

// columns aligns the figures; runs, if not 0, wraps what a device runs.
func (t *deviceTable) columns(runs int) []table.ColumnConfig {
	var configs []table.ColumnConfig
	n := len(t.head())
	for c := 1; c <= n; c++ {
		config := table.ColumnConfig{Number: c, Align: text.AlignRight, AlignHeader: text.AlignRight}
		switch c {
		case 2:
			config = table.ColumnConfig{Number: c, WidthMax: runs, WidthMaxEnforcer: text.WrapSoft}
		case n - 1: // the bar
			config = table.ColumnConfig{Number: c}
		}
		configs = append(configs, config)
	}
	return configs
}
