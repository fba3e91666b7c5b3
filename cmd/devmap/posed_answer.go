package main

import (
	"context"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/posed"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// posedAnswer is the answer to a file that poses a problem of its own.
type posedAnswer struct {
	rows              []posedRow
	form, unit        string // of the placement; of time
	value, bound, gap float64
	argument, method  string
	status            planner.Status
	write             func(io.Writer) error
}

// posedRow is a device; one without nodes is idle.
type posedRow struct {
	device                string
	nodes                 int
	time, transfers, size float64
}

func (c *planCommand) posedDNN(ctx context.Context, file string, data []byte) (*posedAnswer, error) {
	w, err := benchfile.ParseDNNPartitioning(file, data)
	if err != nil {
		return nil, err
	}
	p, solve, form := posed.DNNPartitioning(w), posed.Contiguous, "contiguous"
	if !c.contiguous {
		solve, form = posed.Any, "any assignment"
	}
	s, err := solve(ctx, p, posed.GraphSettings{Progress: c.told})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	loads, _, err := p.Score(s.Place)
	if err != nil {
		return nil, fmt.Errorf("%s: the answer fails its check (please report this): %w", file, err)
	}
	held := make([]int, len(loads))
	for _, d := range s.Place {
		held[d]++
	}
	a := &posedAnswer{
		form: form, unit: "ms", value: s.Value, bound: s.LowerBound, gap: s.Gap(), argument: s.Bound, method: s.Method,
		status: s.Status,
		write:  func(to io.Writer) error { return posed.WriteDNNPartitioning(to, w, s.Place) },
	}
	for d, l := range loads {
		a.rows = append(a.rows, posedRow{fmt.Sprintf("%d %s", d, p.Kinds[p.KindOf(d)].Name), held[d], l.Time, l.Transfers, l.Size})
	}
	return a, nil
}

func (c *planCommand) posedPiper(ctx context.Context, file string, data []byte) (*posedAnswer, error) {
	w, err := benchfile.ParsePiper(file, data)
	if err != nil {
		return nil, err
	}
	if !c.contiguous {
		return nil, out.Usagef("--contiguous=false: the stages of %s are a pipeline's, each the difference of two down-sets", file)
	}
	p, err := posed.Piper(w, w.MaxDevices, w.MaxMemory, w.Bandwidth)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s, err := posed.SolvePipeline(ctx, p, posed.PipelineSettings{Progress: c.told})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	held := make([]int, len(s.Loads))
	for _, d := range s.Stage {
		held[d]++
	}
	a := &posedAnswer{
		form: "contiguous", unit: "per micro-batch, in the file's unit", value: s.Value, bound: s.LowerBound, gap: s.Gap(), argument: s.Bound, method: s.Method,
		status: s.Status,
		write:  func(to io.Writer) error { return posed.WritePiper(to, w, s) },
	}
	for i, l := range s.Loads {
		a.rows = append(a.rows, posedRow{fmt.Sprintf("stage %d", i), held[i], l.Time, l.Transfers, l.Memory})
	}
	return a, nil
}

// print is the table and the certificate.
func (a *posedAnswer) print(w io.Writer, file string, explain bool) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"device", "nodes", "time", "transfers", "load", "GB"})
	for _, r := range a.rows {
		if r.nodes == 0 {
			t.AppendRow(table.Row{r.device, "–"})
			continue
		}
		t.AppendRow(table.Row{r.device, r.nodes, fmt.Sprintf("%.4f", r.time), fmt.Sprintf("%.4f", r.transfers), fmt.Sprintf("%.4f", r.time+r.transfers), fmt.Sprintf("%.2f", r.size/1e9)})
	}
	say := func(format string, args ...any) { out.Say(w, format+"\n", args...) } //nolint:errcheck // a message
	say("%s, %s (%s)\n%s", out.Cell(file), a.form, a.unit, out.Block(t.Render()))
	say("largest load %.6g · lower bound %.6g (gap %.2f %%) · %s", a.value, a.bound, 100*a.gap, a.status)
	if explain {
		say("method: %s\nbound: %s", a.method, a.argument)
	}
}
