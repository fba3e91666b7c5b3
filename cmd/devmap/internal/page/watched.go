package page

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/planner/emit"
)

// watched is a command that devmap watched.
type watched struct {
	Command string  `json:"command"`
	Note    string  `json:"note,omitzero"`
	Seconds float64 `json:"seconds"`
	// ExitStatus and Ended say how the command ended; Ended is empty if it still ran.
	ExitStatus *int             `json:"exit_status,omitzero"`
	Ended      string           `json:"ended,omitzero"`
	GPUs       []watchedGPU     `json:"gpus"`
	Processes  []watchedProcess `json:"processes"`
	Explained  []explained      `json:"explained"`
	Reasons    []string         `json:"reasons"`
	Notes      []string         `json:"notes"`
}

// watchedGPU is a GPU over time. X is in milliseconds.
type watchedGPU struct {
	GPU                int     `json:"gpu"`
	Name               string  `json:"name"`
	Devices            []int   `json:"devices"`
	CapacityBytes      int64   `json:"capacity_bytes"`
	PredictedUsedBytes []int64 `json:"predicted_used_bytes,omitzero"`
	X                  []int64 `json:"x"`
	Used               []int64 `json:"used"`
	Most               []int64 `json:"most"`
	Others             []int64 `json:"others"`
	Plateaus           int     `json:"plateaus"`
	Rises              int     `json:"rises"`
	GrowthBytes        int64   `json:"growth_bytes"`
	OthersText         string  `json:"others_text"`
}

// watchedProcess is what PyTorch's allocator had in a process on a GPU.
type watchedProcess struct {
	PID                int   `json:"pid"`
	GPU                int   `json:"gpu"`
	AllocatedPeakBytes int64 `json:"allocated_peak_bytes"`
	ReservedPeakBytes  int64 `json:"reserved_peak_bytes"`
	AllocatedBytes     int64 `json:"allocated_bytes"`
	ReservedBytes      int64 `json:"reserved_bytes"`
	OutOfMemory        int64 `json:"out_of_memory"`
	Retries            int64 `json:"retries"`
}

// explained divides the difference of a device.
type explained struct {
	Device    int      `json:"device"`
	Allocated *int64   `json:"allocated,omitzero"`
	Cache     *int64   `json:"cache,omitzero"`
	Outside   *int64   `json:"outside,omitzero"`
	Reasons   []string `json:"reasons"`
}

// OfWatch returns the page of a command that was watched without a plan.
func OfWatch(of *watch.Report, readings []watch.Readings) *Page {
	page := &Page{
		FormatVersion: version, Title: "GPU memory of a command", Categories: categories, Names: []string{}, GPUs: []gpu{},
		Time: &lanes{Note: "devmap watched memory, not time."}, MemoryNote: "No plan was given. The measurements show the memory over time.",
	}
	page.Answer.Sentence = "Watched without a plan: nothing is compared."
	page.watched(of, readings)
	return page
}

// watched adds a watched command. readings are by GPU of the report, nil if they are not known.
func (page *Page) watched(of *watch.Report, readings []watch.Readings) {
	if of.Plan != "" {
		page.Answer.Run = verdict(of.Verdict, "", of.Reasons)
	}
	page.Watch = &watched{Reasons: sentences(of.Reasons), Notes: sentences(of.Notes), Seconds: of.Sampling.Seconds, Note: of.Sampling.Lost}
	if of.Command != nil {
		for i, word := range of.Command.Argv {
			if i > 0 {
				page.Watch.Command += " "
			}
			page.Watch.Command += emit.Shell(word)
		}
		page.Watch.Seconds, page.Watch.ExitStatus, page.Watch.Ended = of.Command.Seconds, of.Command.ExitStatus, of.Command.Ended
		page.Answer.Run = strings.TrimSpace(page.Answer.Run + " " + ended(of.Command))
		page.Facts = append(page.Facts, fact{"Watched", page.Watch.Command, true})
	}
	for i := range of.GPUs {
		var read watch.Readings
		if i < len(readings) {
			read = readings[i]
		}
		page.Watch.GPUs = append(page.Watch.GPUs, ofGPU(&of.GPUs[i], &read, of.Plan != ""))
	}
	for i := range of.Processes {
		for _, on := range of.Processes[i].GPUs {
			page.Watch.Processes = append(page.Watch.Processes, watchedProcess{
				of.Processes[i].PID, on.Index, on.AllocatedPeakBytes, on.ReservedPeakBytes, on.AllocatedBytes, on.ReservedBytes, on.OutOfMemory, on.Retries,
			})
		}
	}
	for i := range of.Explained {
		one := &of.Explained[i]
		page.Watch.Explained = append(page.Watch.Explained, explained{one.Device, one.AllocatedBytes, one.CacheBytes, one.OutsideBytes, one.Reasons})
	}
	for i := range of.Devices {
		device := &of.Devices[i]
		if device.Device >= 0 && device.Device < len(page.GPUs) {
			got := &device.Measured
			page.GPUs[device.Device].Measured = &measured{PeakAllocatedBytes: got.PeakAllocatedBytes, PeakReservedBytes: got.PeakReservedBytes, DeviceUsedBytes: got.DeviceUsedBytes}
		}
	}
}

// ended says how a command ended; empty: as it should.
func ended(command *watch.Command) string {
	switch {
	case command.ExitStatus != nil && *command.ExitStatus != 0:
		return fmt.Sprintf("The command ended: %s.", cmp.Or(command.Ended, fmt.Sprintf("exit status %d", *command.ExitStatus)))
	case command.ExitStatus == nil && command.Ended == "":
		return "The command still ran when devmap ended."
	}
	return ""
}

func ofGPU(of *watch.GPUReport, readings *watch.Readings, planned bool) watchedGPU {
	out := watchedGPU{
		GPU: of.GPU, Name: of.Name, Devices: of.Devices, CapacityBytes: of.CapacityBytes,
		Used: readings.Used, Most: readings.Most, Others: readings.Others,
		Plateaus: of.Growth.Plateaus, Rises: of.Growth.Rises, GrowthBytes: of.Growth.LastUsed - of.Growth.FirstUsed, OthersText: of.Others,
	}
	if planned {
		out.PredictedUsedBytes = of.PredictedUsedBytes[:]
	}
	for i := range readings.Used {
		out.X = append(out.X, int64(i)*readings.Period.Milliseconds())
	}
	return out
}
