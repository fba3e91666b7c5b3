package main

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

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
		for _, w := range ask.Texts(s.Warnings) {
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
