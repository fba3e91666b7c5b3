package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// tables prints what people read.
type tables struct {
	w      io.Writer
	g      *modelgraph.Graph
	work   costmodel.Workload
	short  map[string]string // unit paths as the tables name them
	width  int
	colour bool
}

// defaultWidth holds where the output is no terminal; below leastWidth no
// table is readable.
const defaultWidth, leastWidth = 120, 100

func newTable(w io.Writer, g *modelgraph.Graph, work costmodel.Workload) *tables {
	t := &tables{w: w, g: g, work: work, short: shortNames(g), width: defaultWidth}
	if f := out.FileOf(w); out.Terminal(w) {
		t.colour = os.Getenv("NO_COLOR") == ""
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			t.width = max(columns, leastWidth)
		}
	}
	return t
}

// category is one part of a device's peak: its name and its heading, the
// letter and colour of its stretch in the bar.
type category struct {
	name, heading string
	letter        rune
	colour        text.Color
	of            func(*devicemap.Predicted) int64
}

var categories = []category{
	{"weights", "weights", 'w', text.FgBlue, func(p *devicemap.Predicted) int64 { return p.ParamsBytes }},
	{"gradients", "gradi-\nents", 'g', text.FgGreen, func(p *devicemap.Predicted) int64 { return p.GradsBytes }},
	{"optimizer", "opti-\nmizer", 'o', text.FgCyan, func(p *devicemap.Predicted) int64 { return p.OptimizerStateBytes }},
	{"activations", "activa-\ntions", 'a', text.FgYellow, func(p *devicemap.Predicted) int64 { return p.ActivationsBytes }},
	{"KV cache", "KV\ncache", 'k', text.FgMagenta, func(p *devicemap.Predicted) int64 { return p.KVCacheBytes }},
	{"workspace", "work-\nspace", 's', text.FgRed, func(p *devicemap.Predicted) int64 { return p.WorkspaceBytes }},
	{"communication", "commu-\nnication", 'c', text.FgHiRed, func(p *devicemap.Predicted) int64 { return p.CommBuffersBytes }},
	{"overhead", "over-\nhead", 'x', text.FgHiBlack, func(p *devicemap.Predicted) int64 { return p.OverheadBytes }},
}

// scale is the one unit of a table.
type scale struct {
	name   string
	size   float64
	digits int
}

// scaleFor picks the unit by the largest figure.
func scaleFor(most int64) scale {
	if most >= 1<<30 {
		return scale{"GiB", 1 << 30, 2}
	}
	return scale{"MiB", 1 << 20, 1}
}

func (s scale) print(b int64) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.*f", s.digits, float64(b)/s.size)
}

// doing is the workload in a few words.
func (t *tables) doing() string {
	w := &t.work
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
		s += fmt.Sprintf(", %s", plural(w.NewTokens, "new token"))
	}
	return s
}

// how is the strategy and what is trained, where they are not the usual.
func (t *tables) how() string {
	w := &t.work
	var s string
	switch w.Strategy {
	case costmodel.DeviceMap:
	case costmodel.Pipeline:
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
		s += ", " + plural(w.Images, "image") + " a sequence"
	}
	return s
}

// certificate is the line that says how good the map is.
func (t *tables) certificate(s *planner.Solution) {
	d := &s.Devices[s.Bottleneck]
	if s.Objective == planner.Time {
		t.printf("step %s · lower bound %s (%s) · %s · largest share %.2f%% (GPU %d, %s) · imbalance %.3f\n",
			seconds(s.Value), seconds(s.LowerBound), s.Bound, s.Status, 100*s.LargestShare(), s.Bottleneck,
			sized(d.Predicted.PeakAllocatedBytes+d.Predicted.OverheadBytes, d.Budget()), s.Imbalance())
		return
	}
	proof := fmt.Sprintf("lower bound %.2f%% (%s) · %s", 100*s.LowerBound, s.Bound, s.Status)
	if o := s.Offloaded; o != nil { // the status is that of what left, on the next line
		proof = fmt.Sprintf("lower bound for what stays %.2f%% (%s)", 100*o.Stays.LowerBound, o.Stays.Bound)
	}
	t.printf("largest share %.2f%% (GPU %d, %s) · imbalance %.3f · %s\n",
		100*s.Value, s.Bottleneck, sized(d.Predicted.PeakAllocatedBytes+d.Predicted.OverheadBytes, d.Budget()), s.Imbalance(), proof)
}

// warnings are footnotes.
func (t *tables) warnings(ws []string) {
	for _, w := range ws {
		t.printf("note: %s\n", out.Shortened(out.OneLine(w), out.MaxLine))
	}
}

func (t *tables) printf(format string, args ...any) {
	out.Say(t.w, format, args...) //nolint:errcheck // nothing to do about a closed stderr
}

// plural prints 1 fault, 2 faults, 4 micro-batches.
func plural[T int | int64](n T, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	if strings.HasSuffix(what, "ch") {
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
