package show

import (
	"io"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Printer prints text for people about one model and workload.
type Printer struct {
	to     io.Writer
	graph  *modelgraph.Graph
	work   costmodel.Workload
	short  map[string]string // short names of units' paths in tables
	width  int
	colour bool
	// FirstOf is the GPU whose units a GPU has, if those of a stage share them.
	FirstOf func(gpu int) int
	// Implied is the flag that implies training, if no flag sets the mode.
	Implied string
}

// Tables fit 100 columns, or a narrower terminal of at least 80 columns. Below 80 no table is
// readable.
const maxWidth, minWidth = 100, 80

// New returns a printer to a writer. On a terminal it uses its colours and width.
func New(to io.Writer, graph *modelgraph.Graph, work costmodel.Workload) *Printer {
	to = out.Asides(to)
	printer := &Printer{to: to, graph: graph, work: work, width: maxWidth, colour: out.Coloured(to)}
	if graph != nil {
		printer.short = shortNames(graph)
	}
	if file := out.FileOf(to); out.Terminal(to) {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			printer.width = min(max(columns, minWidth), maxWidth)
		}
	}
	return printer
}

// Into returns a printer to another writer, with the same width and colours.
func (printer *Printer) Into(to io.Writer) *Printer {
	other := *printer
	other.to = to
	return &other
}

func (printer *Printer) printf(format string, args ...any) {
	out.Say(printer.to, format, args...) //nolint:errcheck // nothing to do about a closed stderr
}

// Warnings prints footnotes.
func (printer *Printer) Warnings(warnings []string) { Warnings(printer.to, warnings) }

// faultOfScript matches a warning about the memory of a script with a fault. Plans have it, so that
// watch can name the cause; tables do not.
var faultOfScript = regexp.MustCompile("without map_location puts|^after `del model`")

// Warnings prints footnotes, one per line, wrapped on a terminal.
func Warnings(to io.Writer, warnings []string) {
	to = out.Asides(to)
	for _, warning := range warnings {
		if faultOfScript.MatchString(warning) {
			continue
		}
		line := "note: " + out.Shortened(out.OneLine(warning), out.MaxLine)
		if out.Terminal(to) {
			line = hanging(line, out.Width(to))
		}
		out.Say(to, "%s\n", out.Block(line)) //nolint:errcheck // nothing to do about a closed stderr
	}
}

// hanging wraps a line, with an indent of two from the second line on.
func hanging(line string, width int) string {
	const indent = "  "
	return strings.ReplaceAll(out.Wrap(line, width-len(indent)), "\n", "\n"+indent)
}

// sheet is a table that drops columns if it is wider than a terminal.
type sheet struct {
	headings []string
	left     []string // headings of left-aligned columns; figures are right-aligned
	spare    []string // headings of columns to drop, in order
	compact  bool
	rows     [][]any
}

// fitting returns the table within a width, and the dropped columns. shrink, if not nil, wraps its
// cells.
func (sheet *sheet) fitting(width int, shrink func(*texttab.Table)) (table string, lost []string) {
	for count := 0; ; count++ {
		lost = sheet.spare[:count]
		made := sheet.without(lost)
		if shrink != nil {
			shrink(made)
		}
		if made.Width() <= width || count == len(sheet.spare) {
			return made.String(), lost
		}
	}
}

// without returns the table without some columns.
func (sheet *sheet) without(lost []string) *texttab.Table {
	var shown []int
	var headings []string
	for i, heading := range sheet.headings {
		if !slices.Contains(lost, heading) {
			shown, headings = append(shown, i), append(headings, heading)
		}
	}
	made := texttab.New(headings...)
	if sheet.compact {
		made.Compact()
	}
	for i, heading := range headings {
		if !slices.Contains(sheet.left, heading) {
			made.Right(i)
		}
	}
	for _, row := range sheet.rows {
		cells := make([]any, len(shown))
		for i, from := range shown {
			cells[i] = row[from]
		}
		made.Row(cells...)
	}
	return made
}

// leftOut returns a line about the dropped columns; empty if there are none.
func leftOut(lost []string) string {
	if len(lost) == 0 {
		return ""
	}
	return "Columns left out: " + strings.Join(lost, ", ") + "."
}
