package main

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
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
		t := show.New(cmd.ErrOrStderr(), p.Graph, p.Costs.Workload)
		t.Front(f)
		t.Warnings(document.Warnings)
	}
	return nil
}

// frontOutput is the front file (devmap.front/v1): the maps of which none is
// better in both the step and the largest share, the shortest step first.
type frontOutput struct {
	FormatVersion string             `json:"format_version"`
	Model         devicemap.Model    `json:"model"`
	Workload      costmodel.Workload `json:"workload"`
	Topology      costmodel.Topology `json:"topology"`
	// Complete: every point is proved, and there are no others.
	Complete bool         `json:"complete"`
	Points   []frontPoint `json:"points"`
	Warnings []string     `json:"warnings"`
}

// frontPoint is one map of a front. Its objective is the step, in seconds.
type frontPoint struct {
	StepSeconds  float64                `json:"step_seconds"`
	LargestShare float64                `json:"largest_share"`
	Imbalance    float64                `json:"imbalance"`
	Objective    devicemap.Objective    `json:"objective"`
	DeviceMap    devicemap.Flat         `json:"device_map,omitzero"`
	Stages       []devicemap.Stage      `json:"stages,omitzero"`
	Devices      []devicemap.Prediction `json:"devices"`
}

// frontOf is the front file of a front.
func frontOf(p planner.Problem, front *planner.Front) *frontOutput {
	document := &frontOutput{
		FormatVersion: "devmap.front/v1", Model: devicemap.ModelOf(p.Graph), Workload: p.Costs.Workload,
		Topology: *p.Topology, Complete: front.Complete, Warnings: slices.Clone(p.Graph.Warnings),
	}
	for _, s := range front.Points {
		plan := devicemap.NewPlan(p.Graph, p.Costs, p.Topology, s.Map, s.Devices)
		document.Points = append(document.Points, frontPoint{
			StepSeconds: s.Value, LargestShare: s.LargestShare(), Imbalance: plan.Imbalance,
			Objective: objectiveOf(s), DeviceMap: plan.DeviceMap, Stages: plan.Stages, Devices: plan.Devices,
		})
		for _, w := range ask.Texts(s.Warnings) {
			if !slices.Contains(document.Warnings, w) {
				document.Warnings = append(document.Warnings, w)
			}
		}
	}
	return document
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
