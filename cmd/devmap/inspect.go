package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

type inspectCommand struct{ shared }

func newInspect() *cobra.Command {
	c := &inspectCommand{}
	cmd := &cobra.Command{
		Use:     "inspect MODEL",
		Short:   "Show units, parameters, bytes, FLOPs and activation bytes",
		Example: "  devmap inspect config.json --mode train --batch 4",
		Args:    exactly(1, "one MODEL"),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.workload(cmd.Flags())
	c.later(cmd.Flags())
	cmd.Flags().BoolVar(&c.json, "json", false, "the machine form")
	return cmd
}

// inspectOutput is what inspect --json prints (devmap.inspect/v1).
type inspectOutput struct {
	FormatVersion string             `json:"format_version"`
	Model         devicemap.Model    `json:"model"`
	Workload      costmodel.Workload `json:"workload"`
	Units         []inspectUnit      `json:"units"`
	Warnings      []string           `json:"warnings"`
}

type inspectUnit struct {
	Name            string           `json:"name"`
	Params          int64            `json:"params"`
	ParamsBytes     int64            `json:"params_bytes"`
	Buffers         int64            `json:"buffers"`
	FLOPs           float64          `json:"flops"`
	ActivationBytes int64            `json:"activation_bytes"`
	Origin          costmodel.Origin `json:"origin"`
	Inputs          []string         `json:"inputs"`
}

func (c *inspectCommand) run(cmd *cobra.Command, arg string) error {
	if err := c.refuse(cmd); err != nil {
		return err
	}
	w, err := c.parse()
	if err != nil {
		return err
	}
	g, err := readModel(arg)
	if err != nil {
		return err
	}
	t, err := costs(g, w)
	if err != nil {
		return err
	}
	out := inspectOutput{
		FormatVersion: "devmap.inspect/v1", Model: devicemap.ModelOf(g), Workload: t.Workload,
		Units: inspectUnits(g, t), Warnings: allWarnings(g, t.Warnings),
	}
	if c.json {
		return devicemap.WriteJSON(cmd.OutOrStdout(), out)
	}
	if err := inspectTable(cmd.OutOrStdout(), g, &out); err != nil {
		return err
	}
	newTable(cmd.ErrOrStderr(), g, t.Workload).warnings(out.Warnings)
	return nil
}

func inspectUnits(g *modelgraph.Graph, t *costmodel.Table) []inspectUnit {
	out := make([]inspectUnit, len(g.Units))
	for u := range g.Units {
		unit, cost := &g.Units[u], &t.Units[u]
		out[u] = inspectUnit{
			Name: unit.Name, Params: g.UnitParamCount(u), ParamsBytes: cost.Params,
			FLOPs: cost.FLOPs, ActivationBytes: cost.ActivationBytes(), Origin: cost.Origin, Inputs: []string{},
		}
		for i := unit.First; i < unit.End; i++ {
			out[u].Buffers += g.Layers[i].BufferCount()
		}
		for _, in := range unit.Inputs {
			out[u].Inputs = append(out[u].Inputs, g.Units[in].Name)
		}
	}
	return out
}

func inspectTable(w io.Writer, g *modelgraph.Graph, out *inspectOutput) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options.DrawBorder = false
	t.AppendHeader(table.Row{"unit", "parameters", "bytes", "buffers", "GFLOPs", "activations"})
	right := text.AlignRight
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, Align: right}, {Number: 3, Align: right}, {Number: 4, Align: right}, {Number: 5, Align: right}, {Number: 6, Align: right}})
	for i := range out.Units {
		u := &out.Units[i]
		t.AppendRow(table.Row{u.Name, grouped(u.Params), costmodel.Bytes(u.ParamsBytes), grouped(u.Buffers), fmt.Sprintf("%.1f", u.FLOPs/1e9), costmodel.Bytes(u.ActivationBytes)})
	}
	var bytes int64
	for i := range out.Units {
		bytes += out.Units[i].ParamsBytes
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s parameters in %d units (%v), %s buffer elements\n%s\n",
		g.Name, g.Class, grouped(out.Model.Params), len(out.Units), costmodel.Bytes(bytes), grouped(out.Model.Buffers), t.Render())
	return err
}

// grouped prints 8030261248 as 8,030,261,248.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
