package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

type simulateCommand struct{ *ask.Request }

func newSimulate() *cobra.Command {
	command := &simulateCommand{}
	cmd := &cobra.Command{
		Use:   "simulate PLAN|PROGRAM",
		Short: "Verify and simulate a program: step time, idle time, memory",
		Long: `Verify and simulate one step of devmap's own engine, one instruction at a time.

devmap compiles a plan first, and reads its model again. It re-estimates a plan
for another engine with the same split. A program is a file that devmap emit
--for program wrote, as text or JSON. Without times in the program, a forward
takes one unit of time and a backward two.

For an invalid program devmap lists every error and exits with status 4.`,
		Example: `  devmap simulate plan.json
  devmap simulate plan.json --schedule-file schedule.csv --trace step.json
  devmap simulate program.txt --json`,
		Args: out.Exactly(1, "one PLAN or PROGRAM"),
		RunE: func(cmd *cobra.Command, args []string) error { return command.run(cmd, args[0]) },
	}
	command.Request = ask.New(cmd)
	return cmd
}

func (command *simulateCommand) run(cmd *cobra.Command, file string) error {
	if err := command.Refuse(); err != nil {
		return err
	}
	if err := command.spare(cmd, command.Model); err != nil {
		return err
	}
	data, err := out.Interruptible(cmd.Context(), 0, file, func() ([]byte, error) {
		return modelgraph.ReadSmall(file, "a plan or a program", program.MaxBytes)
	})
	if err != nil {
		return err
	}
	sim := &show.Simulation{}
	var on []int // the devices' GPUs, if some share one
	if sim.Program, on, err = command.program(cmd, file, data); err != nil {
		return err
	}
	sim.Report = sim.Program.Check()
	if len(sim.Report.Faults) > 0 {
		return command.faults(cmd, sim)
	}
	if on == nil {
		sim.Result, err = simulate.Run(sim.Program)
	} else {
		sim.Result, err = simulate.Shared(sim.Program, on)
	}
	if err != nil {
		return fmt.Errorf("playing %q: %w", file, err)
	}
	if command.Trace != "" {
		err := out.Write(cmd, command.Trace, func(to io.Writer) error { return simulate.WriteTrace(to, sim.Program, sim.Result) })
		if err != nil {
			return err
		}
	}
	if sim.Name = sim.Program.Model; sim.Name == "" {
		sim.Name = file
	}
	return command.show(cmd, sim)
}

// spare refuses to write over what is read, and two things to one file.
func (command *simulateCommand) spare(cmd *cobra.Command, model string) error {
	if err := out.Spare(cmd, out.Written{Flag: "output", Path: command.Output}, model); err != nil {
		return err
	}
	if command.Trace != "" && command.Trace == command.Output {
		return out.Usagef("--trace and --output both name %q", command.Trace)
	}
	return out.Spare(cmd, out.Written{Flag: "trace", Path: command.Trace}, model)
}

// program returns the program of the file, and the devices' GPUs if some share one. It compiles a
// plan.
func (command *simulateCommand) program(cmd *cobra.Command, file string, data []byte) (of *program.Program, on []int, err error) {
	if !isPlan(data) {
		if err := command.Idle(); err != nil {
			return nil, nil, err
		}
		of, err = program.Parse(file, data)
		return of, nil, err
	}
	plan, err := devicemap.ReadPlan(file, data)
	if err != nil {
		return nil, nil, err
	}
	if err := command.Contradicted(plan); err != nil {
		return nil, nil, err
	}
	if err := command.spare(cmd, plan.Model.Source); err != nil {
		return nil, nil, err
	}
	made, err := programOf(cmd, plan, file, command.Model, command.ScheduleFile)
	if err != nil {
		return nil, nil, err
	}
	if on = made.together(made.Program); on != nil {
		err = made.share(on)
		show.Warnings(cmd.ErrOrStderr(), made.shared)
	}
	return made.Program, on, err
}

// isPlan reports JSON without the mark of a program: the plan's reader reads or refuses all other
// JSON.
func isPlan(data []byte) bool {
	if begin := bytes.TrimLeft(data, " \t\r\n"); len(begin) == 0 || begin[0] != '{' {
		return false
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.ReadToken(); err != nil {
		return true
	}
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return true
		}
		if name.String() != "format_version" {
			if decoder.SkipValue() != nil {
				return true
			}
			continue
		}
		version, err := decoder.ReadToken()
		return err != nil || version.Kind() != '"' || !strings.HasPrefix(version.String(), "devmap.program/")
	}
	return true
}

// show prints the simulation. The document is the result with --json or -o.
func (command *simulateCommand) show(cmd *cobra.Command, sim *show.Simulation) error {
	result := cmd.OutOrStdout()
	if command.JSON || command.Output != "" {
		document := simulationOf(sim)
		if err := out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, document) }); err != nil {
			return err
		}
		result = cmd.ErrOrStderr()
	}
	if command.JSON {
		return nil
	}
	return sim.Print(result)
}

// faults prints all faults of a program.
func (command *simulateCommand) faults(cmd *cobra.Command, sim *show.Simulation) error {
	if command.JSON || command.Output != "" {
		document := faultsOf(sim)
		if err := out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, document) }); err != nil {
			return err
		}
	}
	if !command.JSON {
		var text strings.Builder
		for _, fault := range sim.Report.Faults {
			text.WriteString(out.Shortened(out.OneLine(fault.Rule+": "+fault.Message), out.MaxLine) + "\n")
		}
		text.WriteString(show.Plural(len(sim.Report.Faults), "fault") + "\n")
		if _, err := io.WriteString(cmd.OutOrStdout(), text.String()); err != nil {
			return err
		}
	}
	return out.ErrCheck
}

const simulateVersion = "devmap.simulate/v1"

// simulateOutput is devmap.simulate/v1. Ticks count Unit: picoseconds or forwards. Instructions
// have the names of the text form, D.N.
type simulateOutput struct {
	FormatVersion string                `json:"format_version"`
	Model         string                `json:"model"`
	Digest        string                `json:"digest,omitzero"`
	Unit          string                `json:"unit"`
	StepSeconds   *float64              `json:"step_seconds"`
	StepTicks     int64                 `json:"step_ticks"`
	Instructions  int                   `json:"instructions"`
	Devices       []simulatedDevice     `json:"devices"`
	Path          []simulatedInstr      `json:"critical_path"`
	Predicted     []simulatedPrediction `json:"predicted"`
	Faults        []simulatedFault      `json:"faults"`
}

type simulatedDevice struct {
	Device      int32             `json:"device"`
	ArenaBytes  int64             `json:"arena_bytes"`
	BudgetBytes int64             `json:"budget_bytes"`
	LiveBytes   int64             `json:"live_bytes"` // the most at once, in the order of lines
	LiveAt      *string           `json:"live_at"`
	IdleBytes   int64             `json:"idle_bytes"`
	PeakBytes   int64             `json:"peak_bytes"` // the most at once, in time
	PeakAt      *string           `json:"peak_at"`
	PeakTicks   int64             `json:"peak_ticks"`
	Streams     []simulatedStream `json:"streams"`
	Bubble      float64           `json:"bubble"`
	InFlight    int               `json:"in_flight"`
	Memory      []simulatedMoment `json:"memory"`
}

type simulatedStream struct {
	Stream    string `json:"stream"`
	BusyTicks int64  `json:"busy_ticks"`
}

// simulatedMoment is the live bytes from a time on.
type simulatedMoment struct {
	Ticks int64 `json:"ticks"`
	Bytes int64 `json:"live_bytes"`
}

type simulatedInstr struct {
	Instruction string `json:"instruction"`
	Start       int64  `json:"start_ticks"`
	End         int64  `json:"end_ticks"`
}

// simulatedPrediction is a plan's prediction for a runtime.
type simulatedPrediction struct {
	Runtime     string   `json:"runtime"`
	StepSeconds *float64 `json:"step_seconds"`
	PeakBytes   []int64  `json:"peak_allocated_bytes"`
}

type simulatedFault struct {
	Rule        string  `json:"rule"`
	Device      *int32  `json:"device"`
	Instruction *string `json:"instruction"`
	Message     string  `json:"message"`
}

func simulationOf(sim *show.Simulation) simulateOutput {
	document := headOf(sim)
	document.StepTicks, document.Unit = sim.Result.Makespan, "forwards"
	if sim.Program.Timed {
		document.StepSeconds, document.Unit = stepOf(sim.Result.Makespan), "picoseconds"
	}
	for i := range sim.Program.Devices {
		document.Devices = append(document.Devices, deviceOf(sim, i))
	}
	for _, at := range sim.Result.Path {
		document.Path = append(document.Path, simulatedInstr{sim.Program.Place(at), sim.Result.Start[at], sim.Result.End[at]})
	}
	return document
}

func deviceOf(sim *show.Simulation, index int) simulatedDevice {
	device, usage, simulated := &sim.Program.Devices[index], &sim.Report.Devices[index], &sim.Result.Devices[index]
	found := simulatedDevice{
		Device: device.ID, ArenaBytes: device.Arena, BudgetBytes: device.Budget,
		LiveBytes: usage.Live, LiveAt: placeOf(sim.Program, usage.At), IdleBytes: usage.Idle,
		PeakBytes: simulated.Peak.Bytes, PeakAt: placeOf(sim.Program, simulated.PeakAt), PeakTicks: simulated.Peak.Time,
		Bubble: sim.Result.Bubble(index), InFlight: simulated.InFlight, Memory: momentsOf(simulated),
	}
	for stream, name := range device.Streams {
		found.Streams = append(found.Streams, simulatedStream{name, simulated.Busy[stream]})
	}
	return found
}

func momentsOf(simulated *simulate.Device) []simulatedMoment {
	moments := make([]simulatedMoment, len(simulated.Memory))
	for i, moment := range simulated.Memory {
		moments[i] = simulatedMoment{moment.Time, moment.Bytes}
	}
	return moments
}

// stepOf returns a step in seconds; nil if none runs, for example for a plan of weights.
func stepOf(ticks int64) *float64 {
	if ticks == 0 {
		return nil
	}
	seconds := show.Ticks(ticks)
	return &seconds
}

// placeOf returns the name of an instruction; nil if there is none.
func placeOf(prog *program.Program, at int32) *string {
	if at < 0 {
		return nil
	}
	place := prog.Place(at)
	return &place
}

// faultsOf returns the document of an invalid program.
func faultsOf(sim *show.Simulation) simulateOutput {
	document := headOf(sim)
	for _, fault := range sim.Report.Faults {
		found := simulatedFault{Rule: fault.Rule, Instruction: placeOf(sim.Program, fault.Instr), Message: fault.Message}
		if fault.Device >= 0 {
			found.Device = &sim.Program.Devices[fault.Device].ID
		}
		document.Faults = append(document.Faults, found)
	}
	return document
}

func headOf(sim *show.Simulation) simulateOutput {
	document := simulateOutput{FormatVersion: simulateVersion, Model: sim.Program.Model, Digest: sim.Program.Plan, Instructions: len(sim.Program.Instrs)}
	for _, prediction := range sim.Program.Predictions {
		document.Predicted = append(document.Predicted, simulatedPrediction{prediction.Runtime, stepOf(prediction.StepTicks), prediction.Peaks})
	}
	return document
}

// maxLogBytes limits a log of allocations.
const maxLogBytes = 256 << 20

// newReplay returns the command that devmap.measure of the Python package calls.
// docs/formats/allocations.md describes its input and its output.
func newReplay() *cobra.Command {
	return &cobra.Command{
		Use:    "replay FILE|-",
		Short:  "Replay a log of allocations in PyTorch's caching allocator",
		Hidden: true,
		Args:   out.Exactly(1, "a log of allocations, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := args[0]
			data, err := out.Interruptible(cmd.Context(), 0, file, func() ([]byte, error) {
				if file != "-" {
					return modelgraph.ReadSmall(file, "a log of allocations", maxLogBytes)
				}
				data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxLogBytes+1))
				if err == nil && len(data) > maxLogBytes {
					err = fmt.Errorf("standard input: larger than the %d MiB that a log of allocations may have", maxLogBytes>>20)
				}
				return data, err
			})
			if err != nil {
				return err
			}
			if file == "-" {
				file = "standard input"
			}
			answer, err := timeline.Replay(file, data)
			if err != nil {
				return err
			}
			return devicemap.WriteJSON(cmd.OutOrStdout(), answer)
		},
	}
}
