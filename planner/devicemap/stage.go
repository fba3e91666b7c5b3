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
	// The seconds are nil where they are not known or were not asked for.
	*steptime.StageTimes
}

// Stages cuts a map where the device changes, in order of execution.
func (m Map) Stages(g *modelgraph.Graph) []Stage {
	var out []Stage
	for u := range g.Units {
		if n := len(out); n == 0 || out[n-1].Device != m[u] {
			out = append(out, Stage{Stage: n, Device: m[u]})
		}
		last := &out[len(out)-1]
		last.Units = append(last.Units, g.Units[u].Name)
	}
	return out
}

// timedStages are [Map.Stages] with the seconds of each.
func timedStages(g *modelgraph.Graph, t *costmodel.Table, topo *costmodel.Topology, m Map) []Stage {
	out := m.Stages(g)
	at := make([]costmodel.Interval, len(out))
	end := 0
	for i := range out {
		at[i] = costmodel.Interval{First: end, End: end + len(out[i].Units)}
		end = at[i].End
	}
	if times, err := steptime.Stages(t, topo, m.places(), at); err == nil {
		for i := range out {
			out[i].StageTimes = &times[i]
		}
	}
	return out
}
