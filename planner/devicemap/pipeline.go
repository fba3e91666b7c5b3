package devicemap

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// pipeline is a map read as stages. A stage is a run of units, in execution order, on one device.
type pipeline struct {
	schedule costmodel.Schedule
	stages   []costmodel.Interval
	device   []int   // of each stage
	opens    []int   // first unit of each stage that does not pass
	of       [][]int // stages of each device
	starts   []int   // the first GPU of each device, if it has several
}

// stagesOf reads a map. A unit without a device starts no stage. Nor does a unit that passes,
// unless it can be a stage alone: the rotary embedding is on every stage.
func stagesOf(table *costmodel.Table, placement Map, devices int) *pipeline {
	pipe := &pipeline{of: make([][]int, devices)}
	alone := costmodel.StageRulesOf(table.Workload.Runtime).Alone
	begin := 0 // first unit that joins the next stage
	middle := costmodel.Middle(table.Workload.Schedule, placement)
	for unit, device := range placement {
		count := len(pipe.stages)
		switch {
		case !alone && table.Units[unit].Passes() || device < 0 || int(device) >= devices:
			continue
		case count > 0 && pipe.device[count-1] == int(device) && unit != middle:
		default:
			pipe.of[device] = append(pipe.of[device], count)
			pipe.stages, pipe.device = append(pipe.stages, costmodel.Interval{First: begin}), append(pipe.device, int(device))
			pipe.opens = append(pipe.opens, unit)
			count++
		}
		begin = unit + 1
		pipe.stages[count-1].End = begin
	}
	if count := len(pipe.stages); count > 0 {
		pipe.stages[count-1].End = len(placement)
	}
	pipe.schedule = costmodel.NewSchedule(&table.Workload, 0, 1)
	for _, on := range pipe.of {
		pipe.schedule.Chunks = max(pipe.schedule.Chunks, int64(len(on)))
		if len(on) > 0 {
			pipe.schedule.Stages++
		}
	}
	return pipe
}

// predict predicts every device's stages. A device's rank is that of its first stage.
func (pipe *pipeline) predict(table *costmodel.Table, topo *costmodel.Topology, steps follow) []Prediction {
	rank := make([]int64, len(pipe.of))
	next := int64(0)
	for stage, device := range pipe.device {
		if pipe.of[device][0] == stage {
			rank[device] = next
			next++
		}
	}
	out := make([]Prediction, len(pipe.of))
	for device := range out {
		dev := &topo.Devices[device]
		out[device] = on(device, dev)
		if len(pipe.of[device]) > 0 {
			pipe.walk(&out[device], table, dev, rank[device], steps)
		}
		out[device].settle()
	}
	return out
}

func (pipe *pipeline) walk(out *Prediction, table *costmodel.Table, dev *costmodel.Device, rank int64, steps follow) {
	table = tableOf(table, out.Device)
	place := timeline.Rank{Schedule: pipe.schedule, Index: rank}
	head := false
	for _, stage := range pipe.of[out.Device] {
		place.Chunks = append(place.Chunks, pipe.stages[stage])
		out.Units += pipe.stages[stage].End - pipe.stages[stage].First
		head = head || stage == len(pipe.stages)-1
	}
	slack, number := slackOf(table, dev, head), int(rank)
	if costmodel.StageRulesOf(table.Workload.Runtime).Arena {
		slack = [2]float64{} // there is no pool
	}
	if pipe.schedule.Kind == "" {
		number = out.Device
	} else {
		for len(place.Chunks) < int(pipe.schedule.Chunks) {
			place.Chunks = append(place.Chunks, costmodel.Interval{}) // other devices have more chunks
		}
	}
	step := timeline.RankStep(table, place, dev)
	steps.keep(out.Device, step)
	host := timeline.HostBytes(table, place)
	out.Predicted = predicted(step.Peak(), table.Overhead(number, dev)+costmodel.PageTables(host), slack)
	if engine := table.Workload.Runtime; engine == costmodel.Devmap && dev.Own.GranuleBytes > 0 {
		out.Predicted.fill(dev.Own.GranuleBytes)
	}
	out.Predicted.HostBytes = host
	out.Predicted.widen(table)
}
