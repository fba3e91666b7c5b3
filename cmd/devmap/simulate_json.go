package main

import (
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

const simulateVersion = "devmap.simulate/v1"

// simulateOutput is devmap.simulate/v1. Ticks are those of Unit, picoseconds or
// forwards; instructions are as the text names them, D.N.
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
	LiveBytes   int64             `json:"live_bytes"` // the most at once, by the order of lines
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

// simulatedMoment is what is live from a time on.
type simulatedMoment struct {
	Ticks int64 `json:"ticks"`
	Bytes int64 `json:"live_bytes"`
}

type simulatedInstr struct {
	Instruction string `json:"instruction"`
	Start       int64  `json:"start_ticks"`
	End         int64  `json:"end_ticks"`
}

// simulatedPrediction is what a plan predicts for a runtime.
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

// stepOf is a step in seconds, nil where none is run, as in a plan of weights.
func stepOf(ticks int64) *float64 {
	if ticks == 0 {
		return nil
	}
	seconds := show.Ticks(ticks)
	return &seconds
}

// placeOf names an instruction, nil where there is none.
func placeOf(prog *program.Program, at int32) *string {
	if at < 0 {
		return nil
	}
	place := prog.Place(at)
	return &place
}

// faultsOf is the document of a program that is not simulated.
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
