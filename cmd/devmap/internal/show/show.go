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

// Printer prints what people read of one model under one workload.
type Printer struct {
	to     io.Writer
	graph  *modelgraph.Graph
	work   costmodel.Workload
	short  map[string]string // unit paths as the tables name them
	width  int
	colour bool
	// Implied is the flag that means training, which no flag asks for.
	Implied string
}

// Tables are laid out for 100 columns, or for a narrower terminal. Below 80 no
// table is readable.
const maxWidth, minWidth = 100, 80

// New prints to a writer, with colours and as wide as it is where that is a
// terminal.
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

// Into prints elsewhere, as it would where it prints now.
func (printer *Printer) Into(to io.Writer) *Printer {
	other := *printer
	other.to = to
	return &other
}

func (printer *Printer) printf(format string, args ...any) {
	out.Say(printer.to, format, args...) //nolint:errcheck // nothing to do about a closed stderr
}

// Warnings are footnotes.
func (printer *Printer) Warnings(warnings []string) { Warnings(printer.to, warnings) }

// faultOfScript is a warning of what a script with a fault would hold. A plan has it, so
// that watch can name the cause; a table does not.
var faultOfScript = regexp.MustCompile("without map_location puts|^after `del model`")

// Warnings prints footnotes: a line each, which a terminal gets wrapped.
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

// hanging wraps a line, with an indent of two from the second on.
func hanging(line string, width int) string {
	const indent = "  "
	return strings.ReplaceAll(out.Wrap(line, width-len(indent)), "\n", "\n"+indent)
}

// sheet is a table that loses columns if it is wider than a terminal.
type sheet struct {
	headings []string
	left     []string // the headings of texts; figures are on the right
	spare    []string // the headings that can go, the first first
	compact  bool
	rows     [][]any
}

// fitting is the table within a width, and the columns that it lost. shrink, if there
// is one, wraps its cells.
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

// without is the table without some columns.
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

// leftOut is a line on the columns that a table lost; empty if it lost none.
func leftOut(lost []string) string {
	if len(lost) == 0 {
		return ""
	}
	return "Columns left out: " + strings.Join(lost, ", ") + "."
}
