package compile

import (
	"errors"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// stage is the first pass: runs of units become stages, and the units of
// each its routines.
func (compiler *compiler) stage(graph *modelgraph.Graph) error {
	compiler.cut()
	first, last := costmodel.Running(compiler.table.Units)
	if last < 0 {
		return errors.New("no unit runs a kernel: there is no program")
	}
	var makes, token int64 // of the last unit before
	for number := range compiler.stages {
		stage := &compiler.stages[number]
		stage.takes, stage.takesToken = makes, token
		stage.first = stage.First <= first && first < stage.End
		stage.last = stage.First <= last && last < stage.End
		for index := stage.First; index < stage.End; index++ {
			if unit := &compiler.units[index]; !unit.Passes {
				makes, token = unit.Output, unit.Token
			}
		}
		if stage.End > last {
			makes, token = 0, 0 // no unit takes the stream after this
		}
		stage.makes, stage.makesToken = makes, token
		compiler.routines(graph, stage)
	}
	return nil
}

// cut finds the stages, and assigns them to their devices.
func (compiler *compiler) cut() {
	middle := costmodel.Middle(compiler.table.Workload.Schedule, compiler.places)
	for index := range compiler.units {
		count := len(compiler.stages)
		on := compiler.units[index].device
		if count > 0 && compiler.stages[count-1].device.index == on && index != middle {
			compiler.stages[count-1].End = index + 1
			continue
		}
		compiler.stages = append(compiler.stages, stage{
			Interval: costmodel.Interval{First: index, End: index + 1}, device: &compiler.devices[on], out: program.None, dout: program.None, token: program.None,
		})
	}
	for number := range compiler.stages {
		stage := &compiler.stages[number]
		device := stage.device
		if len(device.stages) == 0 {
			compiler.ranks = append(compiler.ranks, device)
		}
		stage.number, stage.chunk = number, len(device.stages)
		device.stages = append(device.stages, stage)
	}
}

// routines joins units that pass the stream with the next unit that runs kernels, and those at the
// end with the last one. A stage without input and output has no routine.
func (compiler *compiler) routines(graph *modelgraph.Graph, stage *stage) {
	begin := stage.First
	for index := stage.First; index < stage.End; index++ {
		if !compiler.units[index].Passes {
			stage.routines = append(stage.routines, compiler.routine(begin, index+1, index))
			begin = index + 1
		}
	}
	switch count := len(stage.routines); {
	case count > 0:
		stage.routines[count-1].End = stage.End
	case stage.makes > 0:
		stage.routines = append(stage.routines, compiler.routine(stage.First, stage.End, stage.First))
	}
	target := -1
	for number := len(stage.routines) - 1; number >= 0; number-- {
		routine := &stage.routines[number]
		routine.number, routine.target = number, target
		if routine.Input > 0 {
			target = number
		}
		compiler.register(graph, routine)
	}
}

func (compiler *compiler) routine(first, end, index int) routine {
	none := program.None
	out := routine{
		Interval: costmodel.Interval{First: first, End: end}, Regions: compiler.units[index].Regions, unit: index,
		forward: none, remade: none, recompute: none, backward: none, learn: none, whole: none, decode: none,
	}
	for unit := first; unit < end; unit++ {
		ticks := compiler.times.Unit(unit, int(compiler.units[unit].device))
		out.ticks.Forward += ticks.Forward
		out.ticks.Recompute += ticks.Recompute
		out.ticks.Backward += ticks.Backward
		out.ticks.Learn += ticks.Learn
		out.ticks.Token += ticks.Token
		out.ticks.Store += ticks.Store
		out.ticks.Fetch += ticks.Fetch
	}
	return out
}
