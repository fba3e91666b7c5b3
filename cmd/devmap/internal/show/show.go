package show

import (
	"io"

	"golang.org/x/term"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
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

// Warnings prints footnotes.
func Warnings(to io.Writer, warnings []string) {
	to = out.Asides(to)
	for _, warning := range warnings {
		out.Say(to, "note: %s\n", out.Shortened(out.OneLine(warning), out.MaxLine)) //nolint:errcheck // nothing to do about a closed stderr
	}
}
