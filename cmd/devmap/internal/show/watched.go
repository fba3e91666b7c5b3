package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/watch"
)

// Watched prints the GPU memory of a command compared with its plan, and the verdict.
func Watched(to io.Writer, ran *watch.Report) {
	say := func(format string, args ...any) {
		out.Say(to, format, args...) //nolint:errcheck // nothing to do about a closed stderr
	}
	say("%s\n%s\n", watchedTitle(ran), out.Block(watchedGPUs(ran)))
	if ran.Imbalance.Measured != nil && len(ran.GPUs) > 1 && ran.Plan == "" {
		say("imbalance %.3f\n", *ran.Imbalance.Measured)
	} else if ran.Imbalance.Measured != nil && len(ran.GPUs) > 1 {
		say("imbalance %.3f, predicted %.3f\n", *ran.Imbalance.Measured, ran.Imbalance.Predicted)
	}
	for i, reason := range ran.Reasons {
		if i == 0 {
			reason = string(ran.Verdict) + ": " + reason
		} else {
			reason = "  " + reason
		}
		say("%s\n", reason)
	}
	for i := range ran.Explained {
		if len(ran.Processes) == 0 {
			break // no process reported torch's memory; a note says so
		}
		say("  device %d: %s\n", ran.Explained[i].Device, strings.Join(ran.Explained[i].Reasons, "; "))
	}
	Warnings(to, ran.Notes)
}

// watchedTitle describes the command, its duration, and the readings.
func watchedTitle(ran *watch.Report) string {
	sampling := &ran.Sampling
	seen := fmt.Sprintf("%s: %s in %s, %s apart at most", sampling.Name, Plural(sampling.Samples, "reading"), Seconds(sampling.Seconds), Seconds(sampling.LongestSeconds))
	name := ""
	if ran.Model.Name != "" {
		name = out.Cell(ran.Model.Name) + ", "
	}
	if ran.Command == nil {
		return fmt.Sprintf("%sall processes on the GPUs · %s", name, seen)
	}
	how := ran.Command.Ended
	if how == "" {
		how = "it goes on"
	}
	return fmt.Sprintf("%s%s (process %d: %s) · %s", name, out.Cell(strings.Join(ran.Command.Argv, " ")), ran.Command.PID, how, seen)
}

// watchedGPUs returns a row per GPU: its allocated memory and its memory in use, each compared with
// the plan.
func watchedGPUs(ran *watch.Report) string {
	table := texttab.New("GPU", "", "allocated,\npredicted", "\nmeasured", "apart", "on the GPU,\npredicted", "\nmeasured", "others", "plateaus", "last rise")
	table.Right(0, 2, 3, 4, 5, 6, 7, 8, 9)
	for i := range ran.GPUs {
		gpu := &ran.GPUs[i]
		cells := append([]any{gpu.GPU, out.Cell(gpu.Name)}, allocatedOn(ran, gpu)...)
		low, high := costmodel.Bytes(gpu.PredictedUsedBytes[0]), costmodel.Bytes(gpu.PredictedUsedBytes[1])
		used := high.String()
		if low != high {
			used = fmt.Sprintf("%s to %s", gib(int64(low)), high)
		}
		if ran.Plan == "" {
			used = "–"
		}
		rise := "–"
		if gpu.Growth.Rises > 0 {
			rise = costmodel.Bytes(gpu.Growth.LastRise).String()
		}
		table.Row(append(cells, used, costmodel.Bytes(gpu.PeakUsedBytes).String(), costmodel.Bytes(gpu.BeforeBytes).String(), gpu.Growth.Plateaus, rise)...)
	}
	return table.String()
}

// allocatedOn returns the cells of allocated memory: predicted, measured, difference.
func allocatedOn(ran *watch.Report, gpu *watch.GPUReport) []any {
	for i := range ran.Devices {
		device := &ran.Devices[i]
		if len(gpu.Devices) != 1 || device.Device != gpu.Devices[0] {
			continue
		}
		predicted := device.Predicted.PeakAllocatedBytes
		peak := device.Measured.PeakAllocatedBytes
		switch {
		case peak != nil && ran.Plan == "":
			return []any{"–", costmodel.Bytes(*peak).String(), "–"}
		case ran.Plan == "":
			return []any{"–", "–", "–"}
		case peak != nil:
			return []any{costmodel.Bytes(predicted).String(), costmodel.Bytes(*peak).String(), signed(*peak - predicted)}
		}
		return []any{costmodel.Bytes(predicted).String(), "–", "–"}
	}
	return []any{"–", "–", "–"}
}
