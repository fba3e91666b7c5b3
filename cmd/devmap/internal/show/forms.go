package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Forms prints the form of each stage of a plan, if the planner chose them.
func (printer *Printer) Forms(stages []devicemap.Stage) {
	if text := formsOf(&printer.work, stages); text != "" {
		printer.printf("stages: %s\n", text)
	}
}

// formsOf returns the form of each stage; empty if the planner did not choose them.
func formsOf(workload *costmodel.Workload, stages []devicemap.Stage) string {
	if workload.DP != costmodel.AutoDegree && workload.TP != costmodel.AutoDegree && workload.Recompute != "auto" {
		return ""
	}
	var all []string
	before := ""
	for i := range stages {
		text := form(&stages[i])
		if text == before {
			all = append(all, gpus(&stages[i])+": the same")
		} else {
			all = append(all, gpus(&stages[i])+": "+text)
		}
		before = text
	}
	return strings.Join(all, " · ")
}

func gpus(stage *devicemap.Stage) string {
	if len(stage.Devices) == 0 {
		return fmt.Sprintf("GPU %v", stage.Device)
	}
	return fmt.Sprintf("GPUs %d–%d", stage.Devices[0], slices.Max(stage.Devices))
}

// form describes a stage's degrees and recomputation.
func form(stage *devicemap.Stage) string {
	var parts []string
	if stage.DP > 1 {
		parts = append(parts, fmt.Sprintf("dp %d", stage.DP))
	}
	if stage.TP > 1 {
		parts = append(parts, fmt.Sprintf("tp %d", stage.TP))
	}
	if stage.Recompute != "" {
		parts = append(parts, "recompute "+stage.Recompute)
	}
	if parts == nil {
		return "as one"
	}
	return strings.Join(parts, ", ")
}
