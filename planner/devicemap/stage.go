package devicemap

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Stage is a run of consecutive units on one device.
type Stage struct {
	Stage  int      `json:"stage"`
	Device Device   `json:"device"`
	Units  []string `json:"units"`
	// Devices are all GPUs of a stage with several: DP replicas with TP tensor-parallel GPUs each.
	// Recompute is the stage's own mode if the stages of a plan differ.
	Devices   []int  `json:"devices,omitzero"`
	DP        int64  `json:"dp,omitzero"`
	TP        int64  `json:"tp,omitzero"`
	Recompute string `json:"recompute,omitzero"`
	// StageTimes is nil if the seconds are unknown or not requested.
	*steptime.StageTimes
}

// Stages cuts a map at each change of device, in execution order, and the middle run of a V in two.
func (placement Map) Stages(graph *modelgraph.Graph, schedule costmodel.ScheduleKind) []Stage {
	var out []Stage
	middle := costmodel.Middle(schedule, placement)
	for unit := range graph.Units {
		if count := len(out); count == 0 || out[count-1].Device != placement[unit] || unit == middle {
			out = append(out, Stage{Stage: count, Device: placement[unit]})
		}
		last := &out[len(out)-1]
		last.Units = append(last.Units, graph.Units[unit].Name)
	}
	return out
}

// timedStages returns [Map.Stages] with the seconds of each stage.
func timedStages(graph *modelgraph.Graph, table *costmodel.Table, topo *costmodel.Topology, placement Map) []Stage {
	out := placement.Stages(graph, table.Workload.Schedule)
	at := make([]costmodel.Interval, len(out))
	end := 0
	for i := range out {
		at[i] = costmodel.Interval{First: end, End: end + len(out[i].Units)}
		end = at[i].End
	}
	_, starts := startsOf(table, topo)
	for i := range out {
		out[i].spread(table, starts, int(out[i].Device))
	}
	if times, err := steptime.Stages(table, topo, placement.places(), at); err == nil {
		for i := range out {
			out[i].StageTimes = &times[i]
		}
	}
	return out
}
