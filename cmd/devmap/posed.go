package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/modelgraph/workloads"
	"github.com/devmap-dev/devmap/planner/partition"
	"github.com/devmap-dev/devmap/planner/stages"
	problems "github.com/devmap-dev/devmap/planner/workloads"
)

// A file of a public partitioning problem names its own devices. Without
// --gpus and --topology it is solved as it stands, and the answer is written
// in the form of the problem's authors, whose programs can judge it.

// posed is the answer to such a file.
type posed struct {
	rows                        []posedRow
	unit                        string // of time
	value, bound, gap           float64
	argument, method            string
	optimal, stopped, anyDevice bool
	write                       func(io.Writer) error
}

type posedRow struct {
	device                string
	nodes                 int
	time, transfers, size float64
	free                  bool // idle
}

const maxPosedBytes = 256 << 20

// posedFile is the format and content of a file that poses a problem of its
// own; any other file, and what cannot be read, is a model's.
func (c *planCommand) posedFile(arg string) (format workloads.Format, data []byte) {
	if c.gpus != "" || c.topology != "" {
		return "", nil
	}
	info, err := os.Stat(arg)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPosedBytes {
		return "", nil
	}
	if data, err = os.ReadFile(arg); err != nil {
		return "", nil
	}
	var top map[string]jsontext.Value
	if json.Unmarshal(data, &top) != nil {
		return "", nil
	}
	return workloads.FormatOf(data, func(member string) bool { _, ok := top[member]; return ok }), data
}

// posedFlags are those that mean something here.
var posedFlags = []string{"contiguous", "time-limit", "json", "output", "explain", "objective"}

func (c *planCommand) solvePosed(cmd *cobra.Command, file string, format workloads.Format, data []byte) error {
	var other []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(posedFlags, f.Name) {
			other = append(other, "--"+f.Name)
		}
	})
	if c.objective == front {
		other = append(other, "--objective "+front)
	}
	if len(other) > 0 {
		return usagef("%s names its own devices and costs, and is solved for its smallest largest load: %s would mean nothing here (with --gpus or --topology it is planned as a model)",
			file, strings.Join(other, ", "))
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), c.timeLimit)
	defer cancel()
	var a *posed
	var err error
	switch format {
	case workloads.DNNPartitioningFormat:
		a, err = c.posedDNN(ctx, file, data)
	case workloads.PiperFormat:
		a, err = c.posedPiper(ctx, file, data)
	default:
		return usagef("%s names no devices: add --gpus N", file)
	}
	var tooLittle *partition.InfeasibleError
	var noStages *stages.InfeasibleError
	if errors.As(err, &tooLittle) || errors.As(err, &noStages) {
		return &infeasible{err: err}
	}
	if err != nil {
		return err
	}
	if err := writeOut(cmd.OutOrStdout(), c.out, a.write); err != nil {
		return err
	}
	if !c.json {
		a.print(cmd.ErrOrStderr(), file, c.explain)
	}
	return nil
}

func (c *planCommand) posedDNN(ctx context.Context, file string, data []byte) (*posed, error) {
	w, err := workloads.ParseDNNPartitioning(file, data)
	if err != nil {
		return nil, err
	}
	p, solve := problems.DNNPartitioning(w), partition.Contiguous
	if !c.contiguous {
		solve = partition.Any
	}
	s, err := solve(ctx, p, partition.Settings{})
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
	a := &posed{
		unit: "ms", value: s.Largest, bound: s.LowerBound, gap: s.Gap(), argument: s.Bound, method: s.Method,
		optimal: s.Optimal, stopped: s.Stopped, anyDevice: !c.contiguous,
		write: func(to io.Writer) error { return problems.WriteDNNPartitioning(to, w, s.Place) },
	}
	for d, l := range loads {
		a.rows = append(a.rows, posedRow{fmt.Sprintf("%d %s", d, p.Kinds[p.KindOf(d)].Name), held[d], l.Time, l.Transfers, l.Size, held[d] == 0})
	}
	return a, nil
}

func (c *planCommand) posedPiper(ctx context.Context, file string, data []byte) (*posed, error) {
	w, err := workloads.ParsePiper(file, data)
	if err != nil {
		return nil, err
	}
	if !c.contiguous {
		return nil, usagef("--contiguous=false: the stages of %s are a pipeline's, each the difference of two down-sets", file)
	}
	p, err := problems.Piper(w, w.MaxDevices, w.MaxMemory, w.Bandwidth)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s, err := stages.Solve(ctx, p, stages.Settings{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	held := make([]int, len(s.Loads))
	for _, d := range s.Stage {
		held[d]++
	}
	a := &posed{
		unit: "per micro-batch, in the file's unit", value: s.Largest, bound: s.LowerBound, gap: s.Gap(), argument: s.Bound, method: s.Method,
		optimal: s.Optimal, stopped: s.Stopped,
		write: func(to io.Writer) error { return problems.WritePiper(to, w, s) },
	}
	for i, l := range s.Loads {
		a.rows = append(a.rows, posedRow{fmt.Sprintf("stage %d", i), held[i], l.Time, l.Transfers, l.Memory, false})
	}
	return a, nil
}

// print is the table and the certificate.
func (a *posed) print(w io.Writer, file string, explain bool) {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"device", "nodes", "time", "transfers", "load", "GB"})
	for _, r := range a.rows {
		if r.free {
			t.AppendRow(table.Row{r.device, "–"})
			continue
		}
		t.AppendRow(table.Row{r.device, r.nodes, fmt.Sprintf("%.4f", r.time), fmt.Sprintf("%.4f", r.transfers), fmt.Sprintf("%.4f", r.time+r.transfers), fmt.Sprintf("%.2f", r.size/1e9)})
	}
	status := "feasible"
	switch {
	case a.optimal:
		status = "optimal"
	case a.stopped:
		status = "limit reached"
	}
	form := "contiguous"
	if a.anyDevice {
		form = "any assignment"
	}
	say := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) } //nolint:errcheck // a message
	say("%s, %s (%s)\n%s", file, form, a.unit, t.Render())
	say("largest load %.6g · lower bound %.6g (gap %.2f %%) · %s", a.value, a.bound, 100*a.gap, status)
	if explain {
		say("method: %s\nbound: %s", a.method, a.argument)
	}
}
