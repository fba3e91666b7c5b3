package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// front prints the maps between the shortest step and the smallest largest
// share.
func (c *planCommand) front(cmd *cobra.Command, p planner.Problem, asked *strategy.Problem, notes []string) error {
	if c.Explain {
		return out.Usagef("--explain is for one map, and --objective front has several: take --objective time or memory")
	}
	f, err := planner.SolveFront(cmd.Context(), p, planner.Settings{TimeLimit: c.left()})
	if err != nil {
		return withHelps(cmd.Context(), err, asked)
	}
	document := frontOf(p, f)
	document.Warnings = slices.Concat(notes, document.Warnings)
	if err := out.Write(cmd, c.Output, func(w io.Writer) error { return devicemap.WriteJSON(w, document) }); err != nil {
		return err
	}
	if !c.JSON {
		t := newTable(cmd.ErrOrStderr(), p.Graph, p.Costs.Workload)
		t.front(f)
		t.warnings(document.Warnings)
	}
	return nil
}

// frontOf is the front file.
func frontOf(p planner.Problem, f *planner.Front) *devicemap.FrontFile {
	out := &devicemap.FrontFile{
		FormatVersion: devicemap.FrontVersion, Model: devicemap.ModelOf(p.Graph), Workload: p.Costs.Workload,
		Topology: *p.Topology, Complete: f.Complete, Warnings: slices.Clone(p.Graph.Warnings),
	}
	for _, s := range f.Points {
		point := devicemap.FrontPoint{
			StepSeconds: s.Value, LargestShare: s.LargestShare(), Imbalance: s.Imbalance(),
			Objective: objectiveOf(s), Devices: s.Devices,
		}
		if s.Map != nil {
			point.DeviceMap, point.Stages = s.Map.Flatten(p.Graph), devicemap.TimedStages(p.Graph, p.Costs, p.Topology, s.Map)
		}
		out.Points = append(out.Points, point)
		for _, w := range s.Warnings {
			if !slices.Contains(out.Warnings, w) {
				out.Warnings = append(out.Warnings, w)
			}
		}
	}
	return out
}

func objectiveOf(s *planner.Solution) devicemap.Objective {
	name := s.Objective
	if name == "" {
		name = planner.Memory
	}
	return devicemap.Objective{
		Name: string(name), Value: s.Value, LowerBound: s.LowerBound, Gap: s.Gap(), Status: string(s.Status), Bound: s.Bound,
	}
}

// front is a row per point: the two values, what is proved where not all is,
// and what each GPU runs.
func (t *tables) front(f *planner.Front) {
	w := newWriter()
	head := table.Row{"step", "largest\nshare", "of GPU"}
	runs := 4 // its column
	if !f.Complete {
		head = append(head, "lower\nbound", "proof")
		runs += 2
	}
	w.AppendHeader(append(head, "runs"))
	unit := stepUnit(f.Points)
	for _, s := range f.Points {
		row := table.Row{unit(s.Value), fmt.Sprintf("%.2f%%", 100*s.LargestShare()), s.Bottleneck}
		if !f.Complete {
			row = append(row, unit(s.LowerBound), string(s.Status))
		}
		w.AppendRow(append(row, t.stages(s)))
	}
	var configs []table.ColumnConfig
	for c := 1; c <= min(4, runs-1); c++ {
		configs = append(configs, table.ColumnConfig{Number: c, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	const values, proofs = 32, 58 // the width of the other columns
	width := t.width - values
	if !f.Complete {
		width = t.width - proofs
	}
	configs = append(configs, table.ColumnConfig{Number: runs, WidthMax: width, WidthMaxEnforcer: wrapLines})
	w.SetColumnConfigs(configs)
	t.printf("%s, %s%s\n%s\n", out.Cell(t.g.Name), t.doing(), t.how(), trimmed(w.Render()))
	whole := "every point is proved, and there are no others"
	if !f.Complete {
		whole = "not all is proved: there may be others, and better ones"
	}
	t.printf("%s · %s\n", plural(len(f.Points), "point"), whole)
}

// wrapLines wraps each line by itself.
func wrapLines(s string, width int) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = text.WrapSoft(lines[i], width)
	}
	return strings.Join(lines, "\n")
}

// stepUnit prints steps in one unit, to as many digits as tell neighbours on
// a front apart.
func stepUnit(points []*planner.Solution) func(float64) string {
	if slices.ContainsFunc(points, func(s *planner.Solution) bool { return s.Value >= 1 }) {
		return func(s float64) string { return fmt.Sprintf("%.4f s", s) }
	}
	return func(s float64) string { return fmt.Sprintf("%.3f ms", 1e3*s) }
}

// stages says what runs on each GPU that runs anything: a line each, where
// they are few.
func (t *tables) stages(s *planner.Solution) string {
	if s.Map == nil {
		return "the whole model on every GPU"
	}
	var out []string
	for d := range s.Devices {
		if runs := t.runs(s.Map, devicemap.Device(d)); runs != nothing {
			out = append(out, fmt.Sprintf("%d: %s", d, runs))
		}
	}
	const few = 8
	if len(out) <= few {
		return strings.Join(out, "\n")
	}
	return strings.Join(out, "; ")
}
