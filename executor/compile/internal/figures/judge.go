package main

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/executor/compile"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// setting is a model under a workload, on equal devices, for which programs are compiled.
type setting struct {
	graph    *modelgraph.Graph
	table    *costmodel.Table
	topology *costmodel.Topology
	chain    timeline.Ranks
}

// idle is the part of an arena that its regions leave unused at the peak.
type idle struct {
	share float64
	bytes int64
	runs  bool // its device runs kernels, and does not only pass the stream
	what  string
}

// judge compiles a map and compares its figures. It returns the idle share of every device that
// holds a unit.
func (set *setting) judge(placement devicemap.Map, what string) ([]idle, error) {
	where := fmt.Sprintf("%s on %v", what, placement)
	out, err := compile.Program(set.graph, set.table, set.topology, placement, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	shares, err := set.bytes(out, placement, what, where)
	if err != nil || set.table.Workload.Mode == costmodel.Load {
		return shares, err
	}
	simulated, err := simulate.Run(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	seconds := devicemap.StepSeconds(set.table, set.topology, placement)
	if seconds == nil || *seconds != float64(simulated.Makespan)/1e12 {
		return nil, fmt.Errorf("%s: the plan's step is not %d ticks", where, simulated.Makespan)
	}
	return shares, nil
}

// bytes compares the planned memory with the layout.
func (set *setting) bytes(out *program.Program, placement devicemap.Map, what, where string) (shares []idle, err error) {
	report := out.Check()
	predicted := devicemap.Predict(set.table, set.topology, placement)
	ranks := set.ranks(placement)
	for index := range out.Devices {
		device, found := &out.Devices[index], &predicted[index].Predicted
		if ranks[index] == nil {
			continue
		}
		workspace := set.table.Workspaces * set.topology.Devices[index].WorkspaceBytes
		closed := set.chain.Peak(*ranks[index], workspace)
		usage := &report.Devices[index]
		if closed != device.Arena || found.PeakAllocatedBytes != device.Arena || usage.Live+usage.Idle != device.Arena || usage.Live > device.Arena {
			return nil, fmt.Errorf("%s, device %d: closed form %d, plan %d, arena %d, live and idle %d", where, index, closed, found.PeakAllocatedBytes, device.Arena, usage.Live+usage.Idle)
		}
		walk := timeline.RankStep(set.table, *ranks[index], &set.topology.Devices[index]).Peak().Memory
		if spare := walk.Workspace - usage.Idle; walk.Total() != device.Arena || spare != 0 && spare != aligned(workspace) {
			return nil, fmt.Errorf("%s, device %d: %d idle by the walk and the workspace of %d, %d by the program", where, index, walk.Workspace, workspace, usage.Idle)
		}
		shares = append(shares, idle{float64(usage.Idle) / float64(device.Arena), usage.Idle, set.runs(placement, index), fmt.Sprintf("%s, GPU %d with %s", what, index, set.unitRange(placement, index))})
	}
	return shares, nil
}

// unitRange names the first and the last unit of a device.
func (set *setting) unitRange(placement devicemap.Map, device int) string {
	var names []string
	for unit, on := range placement {
		if int(on) == device {
			names = append(names, set.graph.Units[unit].Name)
		}
	}
	if len(names) == 1 {
		return names[0] + " alone"
	}
	return names[0] + " to " + names[len(names)-1]
}

// runs reports whether a device has a unit that runs kernels.
func (set *setting) runs(placement devicemap.Map, device int) bool {
	for unit, on := range placement {
		if int(on) == device && !set.table.Units[unit].Regions.Passes {
			return true
		}
	}
	return false
}

// ranks are the devices that hold units, in the timeline's form.
func (set *setting) ranks(placement devicemap.Map) []*timeline.Rank {
	out := make([]*timeline.Rank, len(set.topology.Devices))
	var ranks, chunks int64
	for unit, device := range placement {
		if out[device] == nil {
			out[device] = &timeline.Rank{Index: ranks}
			ranks++
		}
		rank := out[device]
		if count := len(rank.Chunks); unit > 0 && placement[unit-1] == device {
			rank.Chunks[count-1].End = unit + 1
		} else {
			rank.Chunks = append(rank.Chunks, costmodel.Interval{First: unit, End: unit + 1})
			chunks = max(chunks, int64(count+1))
		}
	}
	for _, rank := range out {
		if rank == nil {
			continue
		}
		rank.Schedule = costmodel.NewSchedule(&set.table.Workload, ranks, chunks)
		for rank.Schedule.Kind != "" && len(rank.Chunks) < int(chunks) {
			rank.Chunks = append(rank.Chunks, costmodel.Interval{})
		}
	}
	return out
}

func aligned(bytes int64) int64 {
	return (bytes + costmodel.RegionAlign - 1) / costmodel.RegionAlign * costmodel.RegionAlign
}
