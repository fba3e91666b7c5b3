package show

import (
	"fmt"
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
}

// defaultWidth holds where the output is no terminal; below minWidth no table
// is readable.
const defaultWidth, minWidth = 120, 100

// New prints to a writer, with colours and as wide as it is where that is a
// terminal.
func New(to io.Writer, graph *modelgraph.Graph, work costmodel.Workload) *Printer {
	to = out.Asides(to)
	printer := &Printer{to: to, graph: graph, work: work, short: shortNames(graph), width: defaultWidth, colour: out.Coloured(to)}
	if file := out.FileOf(to); out.Terminal(to) {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			printer.width = max(columns, minWidth)
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

// doing is the workload in a few words.
func (printer *Printer) doing() string {
	workload := &printer.work
	switch workload.Mode {
	case costmodel.Load:
		return fmt.Sprintf("weights only, %s", workload.Precision)
	case costmodel.Train:
		text := fmt.Sprintf("training %d × %d tokens, %s, %s", workload.Batch, workload.Seq, workload.Precision, workload.Optimizer)
		if workload.MicroBatches > 1 {
			text += fmt.Sprintf(", %d micro-batches", workload.MicroBatches)
		}
		if workload.Recompute != costmodel.RecomputeNone {
			text += ", recompute " + workload.Recompute
		}
		return text
	case costmodel.Infer:
	}
	s := fmt.Sprintf("inference of %d × %d tokens, %s", workload.Batch, workload.Seq, workload.Precision)
	if workload.NewTokens > 0 {
		s += fmt.Sprintf(", %s", Plural(workload.NewTokens, "new token"))
	}
	return s
}

// how is the strategy and what is trained, where they are not the usual.
func (printer *Printer) how() string {
	workload := &printer.work
	var text string
	switch traits := workload.Strategy.Traits(); {
	case traits.Sequential:
	case traits.Staged:
		text = fmt.Sprintf(", pipeline %s (%s)", workload.Schedule, workload.Runtime)
		if workload.DP != 0 || workload.TP != 0 {
			text += fmt.Sprintf(", stages of %v × %v GPUs (data × tensor parallel)", workload.DP, workload.TP)
		}
	default:
		text = fmt.Sprintf(", %s (%s)", workload.Strategy, workload.Runtime)
	}
	if workload.LoRARank > 0 {
		text += fmt.Sprintf(", LoRA of rank %d", workload.LoRARank)
	}
	if workload.Quantize != "" {
		text += fmt.Sprintf(" on %s", workload.Quantize)
	}
	if workload.Images > 0 {
		text += ", " + Plural(workload.Images, "image") + " a sequence"
	}
	return text
}
