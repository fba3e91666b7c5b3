package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
)

type checkCommand struct{ *ask.Request }

func newCheck() *cobra.Command {
	c := &checkCommand{}
	cmd := &cobra.Command{
		Use:   "check MODEL MAP",
		Short: "Judge an existing device map: every fault, and each GPU's peak",
		Long: `MAP is a plan or any flat device map (module path → device). All faults are
reported at once; with any, the exit status is 4. A plan brings its workload and
devices along; flags override them. Under ddp, zero, fsdp and hsdp a plan has no
map: each GPU's peak is judged.`,
		Example: `  devmap check ./Qwen2.5-3B device_map.json --gpus 4 --mode train --batch 4
  devmap check model.json plan.json`,
		ValidArgsFunction: ask.CompleteModel,
		Args:              exactly(2, "MODEL and MAP"),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0], args[1]) },
	}
	c.Request = ask.New(cmd)
	return cmd
}

// Flags of the search are taken, and hidden, so that one set serves plan and
// check; the map is judged as it is.

// checkOutput is what check --json prints.
type checkOutput struct {
	Devices   []devicemap.Prediction `json:"devices"`
	Imbalance float64                `json:"imbalance"`
	Faults    []fault                `json:"faults"`
}

// fault is a [devicemap.Fault] with all its fields, the empty ones too.
type fault struct {
	Kind    string `json:"kind"`
	Module  string `json:"module"`
	Message string `json:"message"`
	Nearest string `json:"nearest"`
}

func (c *checkCommand) run(cmd *cobra.Command, model, path string) error {
	if err := c.Refuse(); err != nil {
		return err
	}
	g, err := ask.ReadModel(model)
	if err != nil {
		return err
	}
	read, err := out.Interruptible(cmd.Context(), 0, path, func() (*mapFile, error) { return readMap(path) })
	if err != nil {
		return err
	}
	flat, plan, faults := read.flat, read.plan, read.faults
	w, topo, err := c.Setting(plan, flat)
	if err != nil {
		return err
	}
	if err := c.suits(path, w.Strategy, plan); err != nil {
		return err
	}
	if err := c.Lengths(g); err != nil {
		return err
	}
	w.World, w.Dequantized = ask.World(w.Strategy, topo), estimate.Dequantizes(g, topo)
	table, err := ask.Costs(g, w)
	if err != nil {
		return c.blame(path, plan, err)
	}
	var r *devicemap.Report
	if w.Strategy.Traits().Replicated {
		if r, err = devicemap.CheckReplicas(table, topo); err != nil {
			return err
		}
	} else {
		r = devicemap.Check(g, table, topo, flat, faults)
	}
	if err := c.show(cmd, g, table.Workload, r); err != nil {
		return err
	}
	notes := slices.Concat(allWarnings(g, table.Warnings), r.Warnings, c.DeviceNotes(topo), c.IdleNotes(&table.Workload), c.unlikeNotes(cmd, g, plan, r))
	show.Warnings(cmd.ErrOrStderr(), notes)
	if len(r.Faults) > 0 {
		return out.ErrCheck
	}
	return nil
}

// unlikeNotes say where the map, or the call, is not what is judged.
func (c *checkCommand) unlikeNotes(cmd *cobra.Command, g *modelgraph.Graph, plan *devicemap.Plan, r *devicemap.Report) []string {
	var notes []string
	if plan != nil && plan.Model.Digest != "" && plan.Model.Digest != g.Digest() {
		notes = append(notes, fmt.Sprintf("the plan was made for another model (%q, digest %s)", plan.Model.Name, plan.Model.Digest))
	}
	if note := stale(plan, r.Devices); note != "" && !workloadGiven(cmd) {
		notes = append(notes, note)
	}
	if c.Given("pin", "together") {
		notes = append(notes, "--pin and --together are for plan: check judges the map as it is")
	}
	return notes
}

// suits refuses a strategy that the MAP is not of.
func (c *checkCommand) suits(path string, s costmodel.Strategy, plan *devicemap.Plan) error {
	switch {
	case s.Traits().Open:
		return out.Usagef("--strategy auto is for devmap plan: check judges a map under one strategy")
	case s.Traits().Replicated && (plan == nil || !plan.Workload.Strategy.Traits().Replicated):
		return out.Usagef("--strategy %s has no device map to check: under it every GPU runs the whole model (devmap plan predicts it)", s)
	case !s.Traits().Replicated && plan != nil && plan.Workload.Strategy.Traits().Replicated:
		return out.Usagef("--strategy %s: %q is a plan for %s and has no device map", s, path, plan.Workload.Strategy)
	}
	return nil
}

// blame says where a workload that no engine runs came from: a flag that was
// given is a fault of the call, all else one of the plan.
func (c *checkCommand) blame(path string, plan *devicemap.Plan, err error) error {
	var w *costmodel.FieldError
	if plan == nil || !errors.As(err, &w) || c.Given(strings.ReplaceAll(w.Field, "_", "-")) {
		return err
	}
	return &modelgraph.SyntaxError{File: path, Place: "workload." + w.Field, Msg: w.Msg.Words(ask.Say)}
}

// mapFile is what a MAP argument holds; plan is nil where it is a map alone.
type mapFile struct {
	flat   devicemap.Flat
	plan   *devicemap.Plan
	faults []devicemap.Fault
}

func readMap(path string) (*mapFile, error) {
	flat, plan, faults, err := devicemap.ReadMap(path)
	return &mapFile{flat, plan, faults}, err
}

// workloadGiven reports flags that change what a plan is judged for.
func workloadGiven(cmd *cobra.Command) bool {
	given := false
	cmd.Flags().Visit(func(f *pflag.Flag) { given = given || f.Name != "json" })
	return given
}

// stale says where a plan's own figures are not those of today.
func stale(plan *devicemap.Plan, now []devicemap.Prediction) string {
	if plan == nil || len(plan.Devices) != len(now) {
		return ""
	}
	for d := range now {
		then, now := plan.Devices[d].Predicted.PeakAllocatedBytes, now[d].Predicted.PeakAllocatedBytes
		if then != now {
			return fmt.Sprintf("the plan says that GPU %d peaks at %v, and it is %v: the model, the map or devmap changed since", d, costmodel.Bytes(then), costmodel.Bytes(now))
		}
	}
	return ""
}

// show prints the report, for people or for programs.
func (c *checkCommand) show(cmd *cobra.Command, g *modelgraph.Graph, w costmodel.Workload, r *devicemap.Report) error {
	if !c.JSON {
		_, err := io.WriteString(cmd.OutOrStdout(), verdict(out.Cell(g.Name), w.Strategy.Traits().Replicated, r.Faults))
		show.New(cmd.ErrOrStderr(), g, w).Devices(r.Map, r.Devices)
		return err
	}
	out := checkOutput{Devices: r.Devices, Imbalance: r.Imbalance}
	for _, f := range r.Faults {
		out.Faults = append(out.Faults, fault{f.Kind, f.Module, f.Message.Words(ask.Say), f.Nearest})
	}
	return devicemap.WriteJSON(cmd.OutOrStdout(), out)
}

// verdict is the faults, one a line, or that there are none.
func verdict(name string, replicated bool, faults []devicemap.Fault) string {
	if len(faults) == 0 {
		if replicated {
			return name + ": it fits: every GPU runs the whole model\n"
		}
		return name + ": the device map is right: every module has one device, and it fits\n"
	}
	var b strings.Builder
	const shown = 100 // a map of another model has a fault a module
	for i, f := range faults {
		if i == shown {
			fmt.Fprintf(&b, "and %d more\n", len(faults)-shown)
			break
		}
		b.WriteString(out.Shortened(out.OneLine(f.Words(ask.Say)), out.MaxLine) + "\n")
	}
	return b.String() + show.Plural(len(faults), "fault") + "\n"
}
