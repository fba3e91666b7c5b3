package devicemap

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// pipeline is a map read as stages: the runs of units, in the order they
// execute, that are on one device.
type pipeline struct {
	schedule costmodel.Schedule
	stages   []costmodel.Interval
	device   []int   // of each stage
	opens    []int   // the first unit of each that does not pass
	of       [][]int // stages of each device
}

// stagesOf reads a map. A unit that passes (the rotary, of which every stage
// has its own) or has no device begins no stage.
func stagesOf(t *costmodel.Table, m Map, devices int) *pipeline {
	p := &pipeline{of: make([][]int, devices)}
	begin := 0 // of units that the next stage takes along
	for u, d := range m {
		n := len(p.stages)
		switch {
		case t.Units[u].Passes() || d < 0 || int(d) >= devices:
			continue
		case n > 0 && p.device[n-1] == int(d):
		default:
			p.of[d] = append(p.of[d], n)
			p.stages, p.device = append(p.stages, costmodel.Interval{First: begin}), append(p.device, int(d))
			p.opens = append(p.opens, u)
			n++
		}
		begin = u + 1
		p.stages[n-1].End = begin
	}
	if n := len(p.stages); n > 0 {
		p.stages[n-1].End = len(m)
	}
	w := &t.Workload
	p.schedule = costmodel.Schedule{Kind: w.Schedule, Chunks: 1, MicroBatches: max(1, w.MicroBatches)}
	for _, on := range p.of {
		p.schedule.Chunks = max(p.schedule.Chunks, int64(len(on)))
		if len(on) > 0 {
			p.schedule.Stages++
		}
	}
	return p
}

// predict walks every device's stages. A device's rank is that of its first
// stage.
func (p *pipeline) predict(t *costmodel.Table, topo *costmodel.Topology) []Prediction {
	rank := make([]int64, len(p.of))
	next := int64(0)
	for s, d := range p.device {
		if p.of[d][0] == s {
			rank[d] = next
			next++
		}
	}
	out := make([]Prediction, len(p.of))
	for d := range out {
		dev := &topo.Devices[d]
		out[d] = Prediction{Device: d, CapacityBytes: dev.CapacityBytes, ReservedBytes: dev.ReservedBytes}
		if len(p.of[d]) > 0 {
			p.walk(&out[d], t, dev, rank[d])
		}
		out[d].HeadroomBytes = out[d].Budget() - out[d].Predicted.PeakAllocatedBytes - out[d].Predicted.OverheadBytes
	}
	return out
}

func (p *pipeline) walk(out *Prediction, t *costmodel.Table, dev *costmodel.Device, rank int64) {
	place := timeline.Rank{Schedule: p.schedule, Index: rank}
	head := false
	for _, s := range p.of[out.Device] {
		place.Chunks = append(place.Chunks, p.stages[s])
		out.Units += p.stages[s].End - p.stages[s].First
		head = head || s == len(p.stages)-1
	}
	for len(place.Chunks) < int(p.schedule.Chunks) {
		place.Chunks = append(place.Chunks, costmodel.Interval{}) // fewer than others have
	}
	out.Predicted = predicted(timeline.Walk(timeline.Pipeline(t, place, dev)), t.Overhead(int(rank), dev), t.SlackOf(dev, head))
	out.Predicted.widen(t.Band)
}
