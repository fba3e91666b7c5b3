package show

import (
	"fmt"
	"io"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Pipeline prints a diffusion pipeline: its components, what the fullest GPU
// holds in each phase, and on several GPUs the degrees side by side.
func Pipeline(to io.Writer, pipeline *diffusers.Pipeline, solution *planner.Solution, document *devicemap.Plan) {
	say := func(format string, args ...any) {
		out.Say(out.Asides(to), format, args...) //nolint:errcheck // nothing to do about a closed stderr
	}
	work := solution.Pipeline.Workload
	say("%s (%s): %d × %d, %d frames, %d steps, batch %d%s\n", out.Cell(document.Model.Name), out.Cell(pipeline.Class), work.Width, work.Height, work.Frames, work.Steps, work.Batch, degrees(work))
	components := texttab.New("component", "class", "parameters", "GiB")
	components.Right(2)
	components.Right(3)
	for i := range pipeline.Components {
		component := &pipeline.Components[i]
		if component.Graph == nil {
			components.Row(out.Cell(component.Name), out.Cell(component.Class), "left out", "")
			continue
		}
		components.Row(out.Cell(component.Name), out.Cell(component.Class), fmt.Sprint(component.Graph.ParamCount()), inGiB(component.Graph.ParamBytes()))
	}
	say("%s\n", out.Block(components.String()))
	table := texttab.New("phase", "peak by", "weights", "activations", "buffers", "peak GiB", "seconds")
	for column := 2; column < 7; column++ {
		table.Right(column)
	}
	for _, phase := range document.Phases {
		most := fullest(phase.Devices)
		table.Row(phase.Name, phase.Component, inGiB(most.ParamsBytes), inGiB(most.ActivationsBytes), inGiB(most.WorkspaceBytes+most.CommBuffersBytes+most.KVCacheBytes), inGiB(most.PeakAllocatedBytes), fmt.Sprintf("%.2f", phase.Seconds))
	}
	say("%s\n", out.Block(table.String()))
	if len(solution.Configs) > 1 {
		others := texttab.New("degrees", "peak GiB", "seconds")
		others.Right(1)
		others.Right(2)
		for _, way := range solution.Configs[:min(8, len(solution.Configs))] {
			others.Row(strings.TrimPrefix(degrees(way.Pipeline.Workload), ", "), inGiB(fullest(way.Devices).PeakAllocatedBytes), fmt.Sprintf("%.2f", way.Pipeline.Seconds))
		}
		say("%s\n", out.Block(others.String()))
	}
	Warnings(to, document.Warnings)
}

// fullest is the prediction of the device that holds most.
func fullest(devices []devicemap.Prediction) *devicemap.Predicted {
	most := &devices[0].Predicted
	for i := range devices {
		if devices[i].Predicted.PeakAllocatedBytes > most.PeakAllocatedBytes {
			most = &devices[i].Predicted
		}
	}
	return most
}

// degrees is a text on how a workload is spread.
func degrees(work phases.Workload) string {
	text := ""
	for _, degree := range []struct {
		name  string
		count int64
	}{{"cfg", work.CFGDegree}, {"ulysses", work.Ulysses}, {"ring", work.Ring}, {"pipefusion", work.PipeFusion}, {"fully sharded", work.FullyShardDegree}} {
		if degree.count > 1 {
			text += fmt.Sprintf(", %s %d", degree.name, degree.count)
		}
	}
	if work.Offload != "" {
		text += ", offload " + work.Offload
	}
	return text
}

func inGiB(bytes int64) string { return fmt.Sprintf("%.2f", float64(bytes)/(1<<30)) }
