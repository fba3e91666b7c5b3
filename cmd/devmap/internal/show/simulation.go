package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// Simulation prints a checked and simulated program.
type Simulation struct {
	Name    string // of the model, or the file
	Program *program.Program
	Report  *program.Report
	Result  *simulate.Result
}

// Print writes the devices' work and memory, the schedule step by step, and the memory through the
// step.
func (sim *Simulation) Print(to io.Writer) error {
	to = out.Asides(to)
	step, text := "takes no time", sim.devices()+"\n"+sim.predicted()
	if sim.Result.Makespan > 0 {
		step = "takes " + sim.duration(sim.Result.Makespan)
		text = sim.devices() + "\n" + sim.chain() + sim.predicted() + sim.schedule() + "\n" + sim.memory()
	}
	return out.Say(to, "%s: a step %s on %s: %s (%s)\n%s", out.Cell(sim.Name), step,
		Plural(len(sim.Program.Devices), "GPU"), Plural(len(sim.Program.Instrs), "instruction"), sim.unit().name, out.Block(text))
}

// duration formats ticks.
func (sim *Simulation) duration(ticks int64) string {
	if sim.Program.Timed {
		return Seconds(Ticks(ticks))
	}
	return Plural(ticks, "forward")
}

// Ticks converts picoseconds to seconds.
func Ticks(ticks int64) float64 { return float64(ticks) / 1e12 }

func (sim *Simulation) unit() scale {
	largest := int64(0)
	for i := range sim.Program.Devices {
		largest = max(largest, sim.Program.Devices[i].Arena)
	}
	if largest < 1<<20 {
		return scale{"bytes", 1, 0}
	}
	return scaleFor(largest)
}

// devices returns the table of the GPUs: their arenas and their use of time.
func (sim *Simulation) devices() string {
	headings := []string{"GPU", "arena", "budget", "live at\nonce", "fullest at", "computes", "sends", "bubble", "in\nflight"}
	moves := slices.ContainsFunc(sim.Program.Buffers, func(buffer program.Buffer) bool { return buffer.Class == program.Host })
	if moves {
		headings = append(headings, "copies")
	}
	table := texttab.New(headings...)
	table.Right(0, 1, 2, 3)
	for column := 5; column < len(headings); column++ {
		table.Right(column)
	}
	unit := sim.unit()
	for i := range sim.Program.Devices {
		device, usage, simulated := &sim.Program.Devices[i], &sim.Report.Devices[i], &sim.Result.Devices[i]
		copies := sim.copies(device)
		sends := -simulated.Computing - copies
		for _, busy := range simulated.Busy {
			sends += busy
		}
		row := []any{
			device.ID, unit.print(device.Arena), unit.print(device.Budget), unit.print(usage.Live),
			sim.instr(usage.At), sim.duration(simulated.Computing), sim.duration(sends), fmt.Sprintf("%.1f%%", 100*sim.Result.Bubble(i)), simulated.InFlight,
		}
		if moves {
			row = append(row, sim.duration(copies))
		}
		table.Row(row...)
	}
	const fullest = 4
	table.Fit(fullest, narrowest, maxWidth)
	return table.String()
}

// instr names an instruction: its place and its operation.
func (sim *Simulation) instr(at int32) string {
	if at < 0 {
		return ""
	}
	instr := &sim.Program.Instrs[at]
	text := sim.Program.Place(at) + " " + instr.Op.String()
	if instr.Routine >= 0 {
		text += " " + out.Cell(sim.Program.Routines[instr.Routine].Name)
	}
	if instr.Channel >= 0 {
		text += fmt.Sprintf(" %s#%d", out.Cell(sim.Program.Channels[instr.Channel].Name), instr.Sequence)
	}
	if instr.MicroBatch >= 0 {
		text += fmt.Sprintf(" mb%d", instr.MicroBatch)
	}
	return text
}

// copies returns how long a device copies to host memory and back.
func (sim *Simulation) copies(device *program.Device) (took int64) {
	for i := device.First; i < device.End; i++ {
		if op := sim.Program.Instrs[i].Op; op == program.Store || op == program.Fetch {
			took += sim.Result.End[i] - sim.Result.Start[i]
		}
	}
	return took
}

// chain describes the critical path of the step.
func (sim *Simulation) chain() string {
	var computes, sends, copies int64
	devices := map[int32]bool{}
	for _, i := range sim.Result.Path {
		instr := &sim.Program.Instrs[i]
		devices[instr.Device] = true
		switch took := sim.Result.End[i] - sim.Result.Start[i]; instr.Op {
		case program.Send:
			sends += took
		case program.Store, program.Fetch:
			copies += took
		default:
			computes += took
		}
	}
	copying := ""
	if copies > 0 {
		copying = sim.duration(copies) + " copying to the host and back, "
	}
	title := fmt.Sprintf("longest chain: %s on %s:", Plural(len(sim.Result.Path), "instruction"), Plural(len(devices), "GPU"))
	parts := fmt.Sprintf("%s computing, %s%s sending, %s on the way", sim.duration(computes), copying, sim.duration(sends), sim.duration(sim.Result.Makespan-computes-sends-copies))
	return joined([]string{title, parts}, " ", "  ", maxWidth) + "\n"
}

// predicted returns the predictions of plans: the peak of each GPU if they fit on a line, else the
// largest.
func (sim *Simulation) predicted() string {
	const line = 12
	var text strings.Builder
	unit := sim.unit()
	for _, prediction := range sim.Program.Predictions {
		peaks, most := "peaks of", int64(0)
		for _, peak := range prediction.Peaks {
			most = max(most, peak)
			peaks += " " + unit.print(peak)
		}
		if len(prediction.Peaks) > line {
			peaks = "at most " + unit.print(most)
		}
		step := ""
		if prediction.StepTicks > 0 {
			step = "a step of " + sim.duration(prediction.StepTicks) + ", "
		}
		fmt.Fprintf(&text, "predicted for %s: %s%s %s\n", out.Cell(prediction.Runtime), step, peaks, unit.name)
	}
	return text.String()
}
