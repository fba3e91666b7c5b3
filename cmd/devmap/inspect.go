package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

type inspectCommand struct{ *ask.Request }

func newInspect() *cobra.Command {
	c := &inspectCommand{}
	cmd := &cobra.Command{
		Use:               "inspect MODEL",
		Short:             "Show units, parameters, bytes, FLOPs and activation bytes",
		Example:           "  devmap inspect config.json --mode train --batch 4",
		ValidArgsFunction: ask.CompleteModel,
		Args:              exactly(1, "one MODEL"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.Request = ask.New(cmd)
	return cmd
}

// inspectOutput is what inspect --json prints (devmap.inspect/v1).
type inspectOutput struct {
	FormatVersion string          `json:"format_version"`
	Model         devicemap.Model `json:"model"`
	Units         []inspectUnit   `json:"units"`
}

type inspectUnit struct {
	Name            string   `json:"name"`
	Params          int64    `json:"params"`
	ParamsBytes     int64    `json:"params_bytes"`
	FLOPs           float64  `json:"flops"`
	ActivationBytes int64    `json:"activation_bytes"`
	Inputs          []string `json:"inputs"`

	buffers int64
	origin  costmodel.Origin
}

func (c *inspectCommand) run(cmd *cobra.Command, arg string) error {
	if err := c.Refuse(); err != nil {
		return err
	}
	w, err := c.Workload()
	if err != nil {
		return err
	}
	g, err := ask.ReadModel(arg)
	if err != nil {
		return err
	}
	if err := c.Lengths(g); err != nil {
		return err
	}
	t, err := ask.Costs(g, w)
	if err != nil {
		return err
	}
	out := inspectOutput{"devmap.inspect/v1", devicemap.ModelOf(g), inspectUnits(g, t)}
	people := newTable(cmd.ErrOrStderr(), g, t.Workload)
	if c.JSON {
		err = devicemap.WriteJSON(cmd.OutOrStdout(), out)
	} else {
		err = inspectTable(cmd.OutOrStdout(), people, &out)
	}
	people.warnings(append(allWarnings(g, t.Warnings), c.IdleNotes(&t.Workload)...))
	return err
}

func inspectUnits(g *modelgraph.Graph, t *costmodel.Table) []inspectUnit {
	out := make([]inspectUnit, len(g.Units))
	for u := range g.Units {
		unit, cost := &g.Units[u], &t.Units[u]
		out[u] = inspectUnit{
			Name: unit.Name, ParamsBytes: cost.Params,
			FLOPs: cost.FLOPs, ActivationBytes: timeline.Of(cost).Saved, Inputs: []string{}, origin: cost.Origin,
		}
		for i := unit.First; i < unit.End; i++ {
			out[u].Params += g.Layers[i].ParamCount()
			out[u].buffers += g.Layers[i].BufferCount()
		}
		for _, in := range unit.Inputs {
			out[u].Inputs = append(out[u].Inputs, g.Units[in].Name)
		}
	}
	return out
}

func inspectTable(w io.Writer, t *tables, document *inspectOutput) error {
	rows := newWriter()
	rows.AppendHeader(table.Row{"unit", "parameters", "bytes", "buffers", "GFLOPs", "activations kept", "costs are"})
	var configs []table.ColumnConfig
	for c := 2; c <= 6; c++ {
		configs = append(configs, table.ColumnConfig{Number: c, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	rows.SetColumnConfigs(configs)
	var bytes int64
	for i := range document.Units {
		u := &document.Units[i]
		bytes += u.ParamsBytes
		rows.AppendRow(table.Row{
			out.Cell(u.Name), grouped(u.Params), costmodel.Bytes(u.ParamsBytes), grouped(u.buffers),
			fmt.Sprintf("%.1f", u.FLOPs/1e9), costmodel.Bytes(u.ActivationBytes), u.origin,
		})
	}
	return out.Say(w, "%s, %s parameters (%v) in %s, %s elements in buffers; %s\n%s\n",
		out.Cell(strings.TrimSpace(t.g.Name+" "+t.g.Class)), grouped(document.Model.Params), costmodel.Bytes(bytes),
		plural(len(document.Units), "unit"), grouped(document.Model.Buffers), t.doing(), trimmed(rows.Render()))
}

// grouped prints 8030261248 as 8,030,261,248.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
