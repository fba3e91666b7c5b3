package main

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/compile"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// timed is a pipeline of equal stages under 1F1B, with its known makespan. Its times are F, B and W
// = 1, or B = 1.2, W = 0.9 and 0.05 per transfer, as in the zero-bubble pipelines' scheduler
// (sail-sg, zb.py).
type timed struct {
	stages, microBatches        int
	forward, backward, way, end float64
}

var pipelines = []timed{
	{2, 4, 1, 2, 0, 15},
	{2, 8, 1, 2, 0, 27},
	{4, 4, 1, 2, 0, 21},
	{4, 8, 1, 2, 0, 33},
	{4, 16, 1, 2, 0, 57},
	{4, 32, 1, 2, 0, 105},
	{8, 16, 1, 2, 0, 69},
	{8, 32, 1, 2, 0, 117},
	{8, 64, 1, 2, 0, 213},
	{4, 8, 1, 2.1, 0.05, 34.9},
	{4, 16, 1, 2.1, 0.05, 60.3},
	{8, 32, 1, 2.1, 0.05, 124.3},
}

// schedules compiles pipelines of one block per stage with round times. It checks makespans and
// micro-batches in flight against known values.
func schedules(page *page, _ scope) error {
	page.printf("1f1b with a block a stage, as compiled and played:\n\n%7s%14s%9s%10s%8s%10s%9s  %s\n", "stages", "micro-batches", "forward", "backward", "way", "makespan", "bubble", "in flight")
	for _, pipeline := range pipelines {
		result, err := pipeline.simulate()
		if err != nil {
			return err
		}
		var flying []int64
		for index := range result.Devices {
			flying = append(flying, int64(result.Devices[index].InFlight))
			if most := min(pipeline.microBatches, pipeline.stages-index); flying[index] != int64(most) {
				return fmt.Errorf("%+v: %d micro-batches in flight on stage %d, not %d", pipeline, flying[index], index, most)
			}
		}
		makespan := float64(result.Makespan) / second
		if result.Makespan != int64(pipeline.end*second+0.5) {
			return fmt.Errorf("%+v: a makespan of %v", pipeline, makespan)
		}
		bubble := 1 - float64(pipeline.microBatches)*(pipeline.forward+pipeline.backward)/makespan
		page.printf("%7d%14d%9g%10g%8g%10g%9.4f  %v\n", pipeline.stages, pipeline.microBatches, pipeline.forward, pipeline.backward, pipeline.way, makespan, bubble, flying)
	}
	return nil
}

// second is the number of ticks in a second.
const second = 1e12

// simulate compiles and simulates the pipeline. The blocks of a small model take its times; all
// other units take none.
func (pipeline *timed) simulate() (*simulate.Result, error) {
	graph, err := families[0].graph(pipeline.stages)
	if err != nil {
		return nil, err
	}
	set, err := kinds[0].set(graph, costmodel.OneFOneB, pipeline.microBatches, pipeline.stages)
	if err != nil {
		return nil, err
	}
	for from := range pipeline.stages {
		for to := range pipeline.stages {
			if from != to {
				set.topology.Links = append(set.topology.Links, costmodel.Link{From: from, To: to, BytesPerSecond: 9e17, LatencySeconds: pipeline.way})
			}
		}
	}
	placement := make(devicemap.Map, len(graph.Units))
	for unit := range placement {
		work, regions := &set.table.Units[unit].Work, &set.table.Units[unit].Regions
		regions.Output = min(regions.Output, costmodel.RegionAlign) // no time to send
		*work = costmodel.Work{Output: regions.Output}
		if block := unit - 1; 0 <= block && block < pipeline.stages { // the embedding is before them
			work.Forward.Profiled, work.Backward.Profiled = pipeline.forward, pipeline.backward
		}
		placement[unit] = devicemap.Device(min(max(0, unit-1), pipeline.stages-1))
	}
	out, err := compile.Program(set.graph, set.table, set.topology, placement, nil)
	if err != nil {
		return nil, err
	}
	return simulate.Run(out)
}
