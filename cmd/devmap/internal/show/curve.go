package show

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// levels are the characters for heights.
var levels = []rune("▁▂▃▄▅▆▇█")

// curveWidth is the columns of a memory curve.
const curveWidth = 40

// memory returns the live bytes of every GPU through the step: the most in each fortieth of the
// step, from the constant bytes to the peak.
func (sim *Simulation) memory() string {
	const last = 4
	table := texttab.New("GPU", "always", "live bytes through the step", "peak", "at")
	table.Right(0, 1, 3)
	unit := sim.unit()
	for i := range sim.Result.Devices {
		device := &sim.Result.Devices[i]
		at := ""
		if device.PeakAt >= 0 {
			at = fmt.Sprintf("%s: %s", sim.duration(device.Peak.Time), sim.instr(device.PeakAt))
		}
		table.Row(sim.Program.Devices[i].ID, unit.print(sim.always(i)), curve(device, sim.always(i), sim.Result.Makespan), unit.print(device.Peak.Bytes), at)
	}
	table.Fit(last, narrowest, maxWidth)
	return table.String() + "\n"
}

// always returns the constant bytes of a device.
func (sim *Simulation) always(device int) int64 {
	sum := int64(0)
	for i := range sim.Program.Buffers {
		if buffer := &sim.Program.Buffers[i]; int(buffer.Device) == device && buffer.Class.Throughout() {
			sum += buffer.Bytes
		}
	}
	return sum
}

// curve draws a device's memory, from its constant bytes to the peak.
func curve(device *simulate.Device, low, makespan int64) string {
	var most [curveWidth]int64
	for i, moment := range device.Memory {
		end := curveWidth - 1
		if i+1 < len(device.Memory) {
			// With few ticks in a step, some columns are between two ticks.
			until := device.Memory[i+1].Time
			end = max(columnOf(until-1, makespan), columnOf(until, makespan)-1)
		}
		for column := columnOf(moment.Time, makespan); column <= end; column++ {
			most[column] = max(most[column], moment.Bytes)
		}
	}
	var text strings.Builder
	most[columnOf(device.Peak.Time, makespan)] = device.Peak.Bytes
	for _, bytes := range most {
		height := float64(bytes-low) / float64(max(1, device.Peak.Bytes-low))
		text.WriteRune(levels[int(height*float64(len(levels)-1)+0.5)])
	}
	return text.String()
}

// columnOf returns the column of a time in the step.
func columnOf(time, makespan int64) int {
	return max(0, min(int(float64(time)/float64(max(1, makespan))*curveWidth), curveWidth-1))
}
