package show

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// pass is one uninterrupted part of a micro-batch on a device: a stage forward or backward, or a
// token.
type pass struct {
	device, batch int32
	first         int32 // its first instruction
	letter        byte  // F, B or D
	stage         int
	step          int64
}

// schedule returns a schedule as torch prints it (torch 2.11, distributed/pipelining/schedules.py,
// _format_pipeline_order). It has a row per step and a column per device; a cell has stage,
// direction and micro-batch. A pass takes one step whatever its time, and messages take none.
func (sim *Simulation) schedule() string {
	passes, err := passesOf(sim.Program)
	if err != nil || len(passes) == 0 {
		return ""
	}
	grid := newGrid(sim.Program, passes)
	return "\nsteps: stage, F forward, B backward or D a token, micro-batch\n" + grid.String() + "\n"
}

// passesOf finds the passes of all devices, and simulates the program with one tick for each pass
// and none for the rest.
func passesOf(prog *program.Program) ([]pass, error) {
	stepped := *prog
	stepped.Timed, stepped.Instrs, stepped.Channels = true, slices.Clone(prog.Instrs), slices.Clone(prog.Channels)
	for i := range stepped.Channels {
		stepped.Channels[i].Latency = 0
	}
	var passes []pass
	open := false // the last pass may continue
	for i := range stepped.Instrs {
		instr := &stepped.Instrs[i]
		instr.Ticks = 0
		switch {
		case instr.Op.Runs():
			found := pass{device: instr.Device, batch: instr.MicroBatch, first: int32(i), letter: letterOf(instr.Op)}
			if last := len(passes) - 1; open && passes[last].device == found.device && passes[last].batch == found.batch && passes[last].letter == found.letter {
				continue
			}
			instr.Ticks, open = 1, true
			passes = append(passes, found)
		case !within(instr.Op):
			open = false
		}
	}
	result, err := simulate.Run(&stepped)
	if err != nil {
		return nil, err
	}
	for i := range passes {
		passes[i].step = result.Start[passes[i].first]
	}
	numberStages(prog, passes)
	return passes, nil
}

// within reports an instruction that does not end a pass: the pass frees and sends, and copies to the
// host and back.
func within(op program.Op) bool {
	return op == program.Free || op == program.Send || op == program.Store || op == program.Fetch
}

func letterOf(op program.Op) byte {
	switch op {
	case program.Forward:
		return 'F'
	case program.Decode:
		return 'D'
	case program.BackwardInput:
		return 'I'
	case program.BackwardWeight:
		return 'W'
	default: // a backward, or its recomputation
		return 'B'
	}
}

// numberStages numbers the stages by the time of their first forward. A stage is the routines that
// a device runs forward without interruption.
func numberStages(prog *program.Program, passes []pass) {
	type place struct{ device, routine int32 }
	stages := map[place]int{}
	slices.SortStableFunc(passes, func(one, other pass) int {
		return cmp.Or(cmp.Compare(one.step, other.step), cmp.Compare(one.device, other.device))
	})
	count := 0
	for i := range passes {
		is := &passes[i]
		at := place{is.device, prog.Instrs[is.first].Routine}
		number, known := stages[at]
		if !known {
			number = count
			count++
			for next := is.first; next < prog.Devices[is.device].End; next++ {
				instr := &prog.Instrs[next]
				if !within(instr.Op) && (!instr.Op.Runs() || instr.MicroBatch != is.batch || letterOf(instr.Op) != is.letter) {
					break
				}
				if instr.Op.Runs() {
					stages[place{is.device, instr.Routine}] = number
				}
			}
		}
		is.stage = number
	}
}

// The grid's size: rows and columns in the middle are left out if they do not fit.
const gridWidth, gridRows = 100, 40

// newGrid lays out passes, which must be in order of their steps.
func newGrid(prog *program.Program, passes []pass) *texttab.Table {
	widest, steps := 0, passes[len(passes)-1].step+1
	for i := range passes {
		widest = max(widest, len(passes[i].String()))
	}
	var devices []int32
	for i := range prog.Devices {
		if prog.Devices[i].First < prog.Devices[i].End {
			devices = append(devices, int32(i))
		}
	}
	const gap = 2 // between columns
	shown := (gridWidth - len("step")) / (max(widest, len("GPU 10")) + gap)
	columns := shortened(int64(len(devices)), int64(shown))
	headings, column := []string{"step"}, map[int32]int{}
	for _, which := range columns {
		if which < 0 {
			headings = append(headings, "…")
			continue
		}
		column[devices[which]] = len(headings)
		headings = append(headings, fmt.Sprint("GPU ", prog.Devices[devices[which]].ID))
	}
	table := texttab.New(headings...)
	table.Right(0)
	for _, step := range shortened(steps, gridRows) {
		row := make([]any, len(headings))
		for i := range row {
			row[i] = ""
		}
		if step < 0 {
			row[0] = "…"
			table.Row(row...)
			continue
		}
		row[0] = step
		from, _ := slices.BinarySearchFunc(passes, step, func(is pass, step int64) int { return cmp.Compare(is.step, step) })
		for i := from; i < len(passes) && passes[i].step == step; i++ {
			if at, ok := column[passes[i].device]; ok {
				row[at] = passes[i].String()
			}
		}
		table.Row(row...)
	}
	return table
}

// String returns a pass in torch's form: 2F0.
func (is *pass) String() string {
	if is.batch < 0 {
		return fmt.Sprintf("%d%c", is.stage, is.letter)
	}
	return fmt.Sprintf("%d%c%d", is.stage, is.letter, is.batch)
}

// shortened returns the numbers from 0 to count−1. If there are more than shown, -1 replaces the
// middle ones.
func shortened(count, shown int64) []int64 {
	var numbers []int64
	for i := int64(0); i < count; i++ {
		if half := shown / 2; count > shown && i == half {
			numbers = append(numbers, -1)
			i = count - half
		}
		numbers = append(numbers, i)
	}
	return numbers
}
