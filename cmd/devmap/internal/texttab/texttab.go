// Package texttab lays out tables for people: columns without a frame, a line under the headings,
// and no trailing blanks.
package texttab

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table is rows of cells under headings. A heading may have several lines. String cells are printed
// unchanged.
type Table struct {
	writer  table.Writer
	columns []table.ColumnConfig
}

// New returns a table with headings.
func New(headings ...string) *Table {
	writer := table.NewWriter()
	writer.SetStyle(table.StyleLight)
	writer.Style().Options.DrawBorder = false
	writer.Style().Options.SeparateColumns = false
	writer.Style().Format.Header = text.FormatDefault
	writer.Style().Format.HeaderVAlign = text.VAlignBottom
	t := &Table{writer: writer, columns: make([]table.ColumnConfig, len(headings))}
	head := make(table.Row, len(headings))
	for i, heading := range headings {
		head[i], t.columns[i].Number = heading, i+1
	}
	writer.AppendHeader(head)
	return t
}

// Compact removes the line under the headings, and the blank before them.
func (t *Table) Compact() *Table {
	style := t.writer.Style()
	style.Options.SeparateHeader = false
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	return t
}

// Row adds a row.
func (t *Table) Row(cells ...any) { t.writer.AppendRow(cells) }

// Right aligns columns, counted from 0, to the right, as usual for figures.
func (t *Table) Right(columns ...int) {
	for _, c := range columns {
		t.columns[c].Align, t.columns[c].AlignHeader = text.AlignRight, text.AlignRight
	}
}

// Wrap sets the width of a column, counted from 0. Longer lines break between words, each line of a
// cell separately.
func (t *Table) Wrap(column, width int) {
	t.columns[column].WidthMax, t.columns[column].WidthMaxEnforcer = width, wrapLines
}

// Fit wraps a column, counted from 0, so that the table is at most width wide. The column keeps at
// least the width least.
func (t *Table) Fit(column, least, width int) {
	if t.Width() <= width {
		return
	}
	t.Wrap(column, least)
	for widest := least + width - t.Width(); widest > least; widest-- {
		t.Wrap(column, widest)
		if t.Width() <= width {
			return
		}
	}
	t.Wrap(column, least)
}

// Width returns the length of the longest line.
func (t *Table) Width() int { return text.LongestLineLen(t.String()) }

// String returns the table, without a newline at its end.
func (t *Table) String() string {
	lines := strings.Split(t.render(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (t *Table) render() string {
	t.writer.SetColumnConfigs(t.columns)
	return t.writer.Render()
}

// wrapLines wraps each line separately.
func wrapLines(cell string, width int) string {
	lines := strings.Split(cell, "\n")
	for i := range lines {
		lines[i] = text.WrapSoft(lines[i], width)
	}
	return strings.Join(lines, "\n")
}
