package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/page"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// front prints the maps between the shortest step and the smallest largest share.
func (command *planCommand) front(cmd *cobra.Command, asked *ask.Question, notes []string) error {
	if command.Explain {
		return out.Usagef("--explain is for one map, and --objective front has several: take --objective time or memory")
	}
	front, err := planner.SolveFront(cmd.Context(), asked.Problem, planner.Settings{TimeLimit: command.left()})
	if err != nil {
		err = withHelps(cmd.Context(), err, asked)
		command.showRefused(cmd, asked, notes, err)
		return err
	}
	document := frontOf(&asked.Problem, front)
	document.Warnings = slices.Concat(notes, document.Warnings)
	written, err := command.write(cmd, func(writer io.Writer) error { return devicemap.WriteJSON(writer, document) })
	if err == nil {
		err = command.reportFront(cmd, asked, front)
	}
	if err != nil {
		return err
	}
	if !command.JSON {
		printer := command.printer(cmd, asked)
		printer.Front(front, asked.Topology, ask.Defaults(command.Request, asked.Graph, &asked.Costs.Workload))
		printer.Warnings(document.Warnings)
		if !written {
			command.next(cmd, nil, false)
		}
	}
	return nil
}

// reportFront writes the page of a front to the file of --report: that of its shortest step.
func (command *planCommand) reportFront(cmd *cobra.Command, asked *ask.Question, front *planner.Front) error {
	var points []page.Point
	for _, solution := range front.Points {
		points = append(points, pointOf(solution.Value, solution.LargestShare, solution.Devices))
	}
	points[0].Chosen = true
	return command.report(cmd, planOf(asked, front.Points[0], nil), asked, front.Points[0], points)
}

// pointOf is a map of a front on a page.
func pointOf(seconds, share float64, devices []devicemap.Prediction) page.Point {
	point := page.Point{Seconds: seconds, Label: fmt.Sprintf("%.1f%% of the fullest GPU", 100*share)}
	for device := range devices {
		point.PeakBytes = max(point.PeakBytes, devices[device].Predicted.PeakAllocatedBytes)
	}
	return point
}

// planOfFront returns the plan file of a front's shortest step, and its points. It returns another
// file as it is.
func planOfFront(file string, data []byte) (plan []byte, points []page.Point, err error) {
	var fields map[string]jsontext.Value
	if json.Unmarshal(data, &fields) != nil || string(fields["format_version"]) != strconv.Quote(frontVersion) {
		return data, nil, nil //nolint:nilerr // the reader of plans says what is wrong
	}
	var front struct {
		Points []readPoint `json:"points"`
	}
	if err := modelgraph.DecodeJSON(file, data, &front, false); err != nil {
		return nil, nil, err
	}
	if place, msg := frontFault(front.Points, fields["complete"]); msg != "" {
		return nil, nil, &modelgraph.SyntaxError{File: file, Place: place, Msg: msg}
	}
	for _, point := range front.Points {
		points = append(points, pointOf(point.StepSeconds, point.LargestShare, point.Devices))
	}
	points[0].Chosen = true
	var whole []map[string]jsontext.Value // the points with all of their fields
	if err := json.Unmarshal(fields["points"], &whole); err != nil {
		return nil, nil, err
	}
	maps.Copy(fields, whole[0])
	for _, name := range []string{"points", "complete", "largest_share"} {
		delete(fields, name)
	}
	var work map[string]jsontext.Value
	if json.Unmarshal(fields["workload"], &work) == nil && work != nil {
		for _, name := range []string{"schedule", "virtual_stages", "recompute", "offload_activations"} {
			if value := whole[0][name]; value != nil {
				work[name] = value
			} else if name == "offload_activations" { // nothing leaves
				delete(work, name)
			}
			delete(fields, name)
		}
		if fields["workload"], err = json.Marshal(work, json.Deterministic(true)); err != nil {
			return nil, nil, err
		}
	}
	fields["format_version"] = jsontext.Value(`"devmap.plan/v1"`)
	plan, err = json.Marshal(fields, json.Deterministic(true))
	return plan, points, err
}

// readPoint is what a page shows of a [frontPoint].
type readPoint struct {
	StepSeconds  float64                `json:"step_seconds"`
	LargestShare float64                `json:"largest_share"`
	Devices      []devicemap.Prediction `json:"devices"`
}

// frontFault returns the first field of a front that contradicts the others, and why. Each point
// takes more time and a smaller share than the one before it.
func frontFault(points []readPoint, complete jsontext.Value) (place, msg string) {
	if kind := complete.Kind(); kind != jsontext.KindTrue && kind != jsontext.KindFalse {
		return "complete", "missing, or neither true nor false"
	}
	if len(points) == 0 {
		return "points", "there is no map: write the file with devmap plan --objective front -o"
	}
	for i, point := range points {
		at := fmt.Sprintf("points[%d].", i)
		var share float64
		for device := range point.Devices {
			of := &point.Devices[device]
			used := of.Predicted.PeakAllocatedBytes + of.Predicted.OverheadBytes
			share = max(share, float64(used)/max(1, float64(of.CapacityBytes-of.ReservedBytes)))
		}
		switch {
		case point.StepSeconds <= 0:
			return at + "step_seconds", fmt.Sprintf("%v is not above 0", point.StepSeconds)
		case math.Abs(point.LargestShare-share) > 1e-6:
			return at + "largest_share", fmt.Sprintf("%v, and the largest share of its budget that a device of \"devices\" has is %v", point.LargestShare, share)
		case i > 0 && point.StepSeconds <= points[i-1].StepSeconds:
			return at + "step_seconds", fmt.Sprintf("%v is not above %v, that of the point before", point.StepSeconds, points[i-1].StepSeconds)
		case i > 0 && point.LargestShare >= points[i-1].LargestShare:
			return at + "largest_share", fmt.Sprintf("%v is not below %v, that of the point before", point.LargestShare, points[i-1].LargestShare)
		}
	}
	return "", ""
}

const frontVersion = "devmap.front/v1"

// frontOutput is the front file (devmap.front/v1), the shortest step first. None of its maps is
// better than another in both the step and the largest share.
type frontOutput struct {
	FormatVersion string             `json:"format_version"`
	Model         any                `json:"model"` // as in a plan
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
	Objective    any                    `json:"objective"` // as in a plan
	DeviceMap    devicemap.Flat         `json:"device_map,omitzero"`
	Stages       []devicemap.Stage      `json:"stages,omitzero"`
	Devices      []devicemap.Prediction `json:"devices"`
	pointWork
}

// pointWork is what a front chooses of a workload: the values of --schedule, --recompute and
// --offload-activations. The map itself is the point's device_map.
type pointWork struct {
	Schedule           costmodel.ScheduleKind `json:"schedule,omitzero"`
	VirtualStages      int64                  `json:"virtual_stages,omitzero"`
	Recompute          string                 `json:"recompute,omitzero"`
	OffloadActivations string                 `json:"offload_activations,omitzero"`
}

// frontOf returns the front file of a front.
func frontOf(problem *planner.Problem, front *planner.Front) *frontOutput {
	document := &frontOutput{
		FormatVersion: frontVersion, Workload: problem.Costs.Workload,
		Topology: *problem.Topology, Complete: front.Complete, Warnings: slices.Clone(problem.Graph.Warnings),
	}
	for _, solution := range front.Points {
		plan := solution.File(problem)
		document.Model = plan.Model
		document.Points = append(document.Points, frontPoint{
			StepSeconds: solution.Value, LargestShare: solution.LargestShare, Imbalance: plan.Imbalance,
			Objective: plan.Objective, DeviceMap: plan.DeviceMap, Stages: plan.Stages, Devices: plan.Devices,
			pointWork: pointWork{plan.Workload.Schedule, plan.Workload.VirtualStages, plan.Workload.Recompute, plan.Workload.OffloadActivations},
		})
		for _, warning := range ask.Texts(solution.Warnings) {
			if !slices.Contains(document.Warnings, warning) {
				document.Warnings = append(document.Warnings, warning)
			}
		}
	}
	return document
}
