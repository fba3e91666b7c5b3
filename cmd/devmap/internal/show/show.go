package show

import (
	"fmt"
	"io"
	"os"

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
}

// defaultWidth holds where the output is no terminal; below minWidth no table
// is readable.
const defaultWidth, minWidth = 120, 100

// New prints to a writer, with colours and as wide as it is where that is a
// terminal.
func New(to io.Writer, graph *modelgraph.Graph, work costmodel.Workload) *Printer {
	p := &Printer{to: to, graph: graph, work: work, short: shortNames(graph), width: defaultWidth}
	if file := out.FileOf(to); out.Terminal(to) {
		p.colour = os.Getenv("NO_COLOR") == ""
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			p.width = max(columns, minWidth)
		}
	}
	return p
}

func (p *Printer) printf(format string, args ...any) {
	out.Say(p.to, format, args...) //nolint:errcheck // nothing to do about a closed stderr
}

// Warnings are footnotes.
func (p *Printer) Warnings(warnings []string) { Warnings(p.to, warnings) }

// Warnings prints footnotes.
func Warnings(to io.Writer, warnings []string) {
	for _, warning := range warnings {
		out.Say(to, "note: %s\n", out.Shortened(out.OneLine(warning), out.MaxLine)) //nolint:errcheck // nothing to do about a closed stderr
	}
}

// doing is the workload in a few words.
func (p *Printer) doing() string {
	w := &p.work
	switch w.Mode {
	case costmodel.Load:
		return fmt.Sprintf("weights only, %s", w.Precision)
	case costmodel.Train:
		s := fmt.Sprintf("training %d × %d tokens, %s, %s", w.Batch, w.Seq, w.Precision, w.Optimizer)
		if w.MicroBatches > 1 {
			s += fmt.Sprintf(", %d micro-batches", w.MicroBatches)
		}
		if w.Recompute != costmodel.RecomputeNone {
			s += ", recompute " + string(w.Recompute)
		}
		return s
	case costmodel.Infer:
	}
	s := fmt.Sprintf("inference of %d × %d tokens, %s", w.Batch, w.Seq, w.Precision)
	if w.NewTokens > 0 {
		s += fmt.Sprintf(", %s", Plural(w.NewTokens, "new token"))
	}
	return s
}

// how is the strategy and what is trained, where they are not the usual.
func (p *Printer) how() string {
	w := &p.work
	var s string
	switch traits := w.Strategy.Traits(); {
	case traits.Sequential:
	case traits.Staged:
		s = fmt.Sprintf(", pipeline %s (%s)", w.Schedule, w.Runtime)
	default:
		s = fmt.Sprintf(", %s (%s)", w.Strategy, w.Runtime)
	}
	if w.LoRARank > 0 {
		s += fmt.Sprintf(", LoRA of rank %d", w.LoRARank)
	}
	if w.Quantize != "" {
		s += fmt.Sprintf(" on %s", w.Quantize)
	}
	if w.Images > 0 {
		s += ", " + Plural(w.Images, "image") + " a sequence"
	}
	return s
}
