package main

import (
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
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
	document := inspectOutput{"devmap.inspect/v1", devicemap.ModelOf(g), inspectUnits(g, t)}
	people := show.New(cmd.ErrOrStderr(), g, t.Workload)
	if c.JSON {
		err = devicemap.WriteJSON(cmd.OutOrStdout(), document)
	} else {
		err = people.Units(cmd.OutOrStdout(), document.Model.Params, document.Model.Buffers, document.table())
	}
	people.Warnings(append(allWarnings(g, t.Warnings), c.IdleNotes(&t.Workload)...))
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
			for j := range g.Layers[i].Buffers {
				out[u].buffers += g.Layers[i].Buffers[j].Numel()
			}
		}
		for _, in := range unit.Inputs {
			out[u].Inputs = append(out[u].Inputs, g.Units[in].Name)
		}
	}
	return out
}

// table is the rows as people read them.
func (c *inspectOutput) table() []show.Unit {
	rows := make([]show.Unit, len(c.Units))
	for i := range c.Units {
		u := &c.Units[i]
		rows[i] = show.Unit{
			Name: u.Name, Params: u.Params, Bytes: u.ParamsBytes, Buffers: u.buffers,
			FLOPs: u.FLOPs, ActivationBytes: u.ActivationBytes, Origin: u.origin,
		}
	}
	return rows
}
