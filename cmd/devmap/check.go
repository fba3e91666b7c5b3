package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

type checkCommand struct{ shared }

func newCheck() *cobra.Command {
	c := &checkCommand{}
	cmd := &cobra.Command{
		Use:   "check MODEL MAP",
		Short: "Judge an existing device map: every fault, and each GPU's peak",
		Long: `MAP is a plan or any flat device map (module path → device). All faults are
reported at once; with any, the exit status is 4. A plan brings its workload and
devices along; flags override them.`,
		Example: `  devmap check ./Qwen2.5-3B device_map.json --gpus 4 --mode train --batch 4
  devmap check model.json plan.json`,
		Args: exactly(2, "MODEL and MAP"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0], args[1]) },
	}
	c.workload(cmd.Flags())
	c.devices(cmd.Flags())
	c.later(cmd.Flags())
	c.placement(cmd.Flags())
	cmd.Flags().DurationVar(new(time.Duration), "time-limit", planner.DefaultTimeLimit, "for plan")
	for _, name := range searchFlags {
		if err := cmd.Flags().MarkHidden(name); err != nil {
			panic(err) // the flag was made above
		}
	}
	cmd.Flags().BoolVar(&c.json, "json", false, "the machine form on stdout, no table")
	return cmd
}

// searchFlags are taken so that one set of flags serves plan and check; the
// map is judged as it is.
var searchFlags = []string{"objective", "pin", "together", "contiguous", "offload", "time-limit"}

// checkOutput is what check --json prints.
type checkOutput struct {
	Devices   []devicemap.Prediction `json:"devices"`
	Imbalance float64                `json:"imbalance"`
	Faults    []fault                `json:"faults"`
}

// fault is a [devicemap.Fault] with all its fields, the empty ones too.
type fault struct {
	Kind    devicemap.FaultKind `json:"kind"`
	Module  string              `json:"module"`
	Message string              `json:"message"`
	Nearest string              `json:"nearest"`
}

func (c *checkCommand) run(cmd *cobra.Command, model, path string) error {
	if err := c.refuse(cmd); err != nil {
		return err
	}
	g, err := readModel(model)
	if err != nil {
		return err
	}
	read, err := interruptible(cmd.Context(), path, func() (*mapFile, error) { return readMap(path) })
	if err != nil {
		return err
	}
	flat, plan, faults := read.flat, read.plan, read.faults
	w, topo, err := c.setting(cmd, plan, flat)
	if err != nil {
		return err
	}
	if w.Strategy.Replicated() {
		return usagef("--strategy %s has no device map to check: every GPU runs the whole model (devmap plan predicts it)", w.Strategy)
	}
	w.World = world(w.Strategy, topo)
	table, err := costs(g, w)
	if err != nil {
		return err
	}
	r := devicemap.Check(g, table, topo, flat, faults)
	if err := c.show(cmd, g, table.Workload, r); err != nil {
		return err
	}
	notes := allWarnings(g, r.Warnings)
	if plan != nil && plan.Model.Digest != "" && plan.Model.Digest != g.Digest() {
		notes = append(notes, fmt.Sprintf("the plan was made for another model (%q, digest %s)", plan.Model.Name, plan.Model.Digest))
	}
	if anyChanged(cmd, "pin", "together") {
		notes = append(notes, "--pin and --together are for plan: check judges the map as it is")
	}
	newTable(cmd.ErrOrStderr(), g, table.Workload).warnings(notes)
	if len(r.Faults) > 0 {
		return errCheck
	}
	return nil
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

// show prints the report, for people or for programs.
func (c *checkCommand) show(cmd *cobra.Command, g *modelgraph.Graph, w costmodel.Workload, r *devicemap.Report) error {
	if !c.json {
		_, err := io.WriteString(cmd.OutOrStdout(), verdict(cell(g.Name), r.Faults))
		newTable(cmd.ErrOrStderr(), g, w).devices(r.Map, r.Devices)
		return err
	}
	out := checkOutput{Devices: r.Devices, Imbalance: r.Imbalance}
	for _, f := range r.Faults {
		out.Faults = append(out.Faults, fault(f))
	}
	return devicemap.WriteJSON(cmd.OutOrStdout(), out)
}

// verdict is the faults, one a line, or that there are none.
func verdict(name string, faults []devicemap.Fault) string {
	if len(faults) == 0 {
		return name + ": the device map is right: every module has one device, and it fits\n"
	}
	var b strings.Builder
	for _, f := range faults {
		b.WriteString(oneLine(f.String()) + "\n")
	}
	return b.String() + plural(len(faults), "fault") + "\n"
}
