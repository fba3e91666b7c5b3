package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
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
	cmd.Flags().BoolVar(&c.json, "json", false, "the machine form on stdout, no table")
	return cmd
}

// checkOutput is what check --json prints.
type checkOutput struct {
	Devices   []devicemap.Prediction `json:"devices"`
	Imbalance float64                `json:"imbalance"`
	Faults    []devicemap.Fault      `json:"faults"`
	Warnings  []string               `json:"warnings"`
}

func (c *checkCommand) run(cmd *cobra.Command, model, path string) error {
	if err := c.refuse(cmd); err != nil {
		return err
	}
	g, err := readModel(model)
	if err != nil {
		return err
	}
	flat, plan, faults, err := devicemap.ReadMap(path)
	if err != nil {
		return err
	}
	w, topo, err := c.setting(cmd, plan, flat)
	if err != nil {
		return err
	}
	table, err := costs(g, w)
	if err != nil {
		return err
	}
	r := devicemap.Check(g, table, topo, flat, faults)
	warnings := allWarnings(g, r.Warnings)
	if plan != nil && plan.Model.Digest != "" && plan.Model.Digest != g.Digest() {
		warnings = append(warnings, fmt.Sprintf("the plan was made for another model (%q, digest %s)", plan.Model.Name, plan.Model.Digest))
	}
	if !c.json {
		c.table(cmd.OutOrStdout(), g.Name, r)
		t := newTable(cmd.ErrOrStderr(), g, table.Workload)
		t.devices(r.Map, r.Devices)
		t.warnings(warnings)
	} else if err := devicemap.WriteJSON(cmd.OutOrStdout(), checkOutput{r.Devices, r.Imbalance, append([]devicemap.Fault{}, r.Faults...), warnings}); err != nil {
		return err
	}
	if len(r.Faults) > 0 {
		return errCheck
	}
	return nil
}

// setting takes workload and devices from the flags, else from the plan,
// else as many devices as the map names.
func (c *checkCommand) setting(cmd *cobra.Command, plan *devicemap.Plan, flat devicemap.Flat) (costmodel.Workload, *costmodel.Topology, error) {
	w, err := c.parse()
	if err != nil {
		return w, nil, err
	}
	if plan != nil && !anyChanged(cmd, "mode", "batch", "micro-batches", "seq", "target-seq", "new-tokens", "precision", "optimizer", "recompute") {
		w = plan.Workload
	}
	if plan != nil && !anyChanged(cmd, "gpus", "gpu", "topology", "reserve") {
		return w, &plan.Topology, nil
	}
	count := 1
	for _, e := range flat {
		count = max(count, min(int(e.Device)+1, costmodel.MaxDevices))
	}
	topo, err := c.buildTopology(w.Mode, count)
	return w, topo, err
}

func anyChanged(cmd *cobra.Command, names ...string) bool {
	for _, n := range names {
		if cmd.Flags().Changed(n) {
			return true
		}
	}
	return false
}

// table prints the faults, one a line, or that there are none.
func (c *checkCommand) table(w io.Writer, name string, r *devicemap.Report) {
	if len(r.Faults) == 0 {
		fmt.Fprintf(w, "%s: the device map is right: every module has one device, and it fits\n", name)
		return
	}
	for _, f := range r.Faults {
		fmt.Fprintln(w, f)
	}
	fmt.Fprintf(w, "%d faults\n", len(r.Faults))
}
