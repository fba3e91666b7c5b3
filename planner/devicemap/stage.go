package devicemap

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Stage is a stretch of units that follow each other on one device.
type Stage struct {
	Stage  int      `json:"stage"`
	Device Device   `json:"device"`
	Units  []string `json:"units"`
	// Devices are all GPUs of the stage, where it has several: DP replicas, of
	// TP GPUs each that share matrices. Recompute is its own, where the stages of
	// a plan differ.
	Devices   []int  `json:"devices,omitzero"`
	DP        int64  `json:"dp,omitzero"`
	TP        int64  `json:"tp,omitzero"`
	Recompute string `json:"recompute,omitzero"`
	// The seconds are nil where they are not known or were not asked for.
	*steptime.StageTimes
}

// Stages cuts a map where the device changes, in order of execution.
func (placement Map) Stages(graph *modelgraph.Graph) []Stage {
	var out []Stage
	for unit := range graph.Units {
		if count := len(out); count == 0 || out[count-1].Device != placement[unit] {
			out = append(out, Stage{Stage: count, Device: placement[unit]})
		}
		last := &out[len(out)-1]
		last.Units = append(last.Units, graph.Units[unit].Name)
	}
	return out
}

// timedStages are [Map.Stages] with the seconds of each.
func timedStages(graph *modelgraph.Graph, table *costmodel.Table, topo *costmodel.Topology, placement Map) []Stage {
	out := placement.Stages(graph)
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
