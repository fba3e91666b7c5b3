package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Components prints the components of a pipeline with their weights.
func Components(to io.Writer, pipeline *diffusers.Pipeline) error {
	_, err := fmt.Fprintf(to, "%s\n%s\n", out.Cell(pipeline.Class), out.Block(components(pipeline, (*modelgraph.Graph).ParamBytes)))
	return err
}

func components(pipeline *diffusers.Pipeline, weights func(*modelgraph.Graph) int64) string {
	rows := texttab.New("Component", "Class", "Parameters", "GiB").Compact()
	rows.Right(2)
	rows.Right(3)
	for i := range pipeline.Components {
		component := &pipeline.Components[i]
		if component.Graph == nil {
			rows.Row(out.Cell(component.Name), out.Cell(component.Class), "left out", "")
			continue
		}
		rows.Row(out.Cell(component.Name), out.Cell(component.Class), fmt.Sprint(component.Graph.ParamCount()), inGiB(weights(component.Graph)))
	}
	return rows.String()
}

// Pipeline prints a diffusion pipeline: its components, the fullest GPU's memory in each phase, and
// on several GPUs a comparison of the degrees.
func Pipeline(to io.Writer, pipeline *diffusers.Pipeline, solution *planner.Solution, document *devicemap.Plan, defaults func(*phases.Workload) []string) {
	printer := New(to, nil, document.Workload)
	say := printer.printf
	work := solution.Pipeline.Workload
	printer.title([]string{
		out.Cell(document.Model.Name), out.Cell(pipeline.Class),
		asked(&work),
		gpusOf(&document.Topology), strings.TrimPrefix(strings.TrimPrefix(degrees(work)+" ("+document.Workload.Runtime+")", ", "), " "),
	}, defaults(&work))
	say("%s\n", out.Block(components(pipeline, func(graph *modelgraph.Graph) int64 { return weights(graph, &work) })))
	rows := &deviceTable{Printer: printer, devices: document.Devices, unit: scaleFor(1 << 30)}
	table := phasesOf(document, rows, work.Train != nil)
	text, lost := table.fitting(printer.width, nil)
	say("%s\n", out.Block(text))
	said := []string{"GiB of the fullest GPU in each phase.", "Reserved is the allocator's pool."}
	if work.Train != nil {
		said = append(said, "States: gradients, optimizer.")
	}
	if context := rows.contexts(); context != "" {
		said = append(said, "Free counts the CUDA context ("+context+").")
	}
	said = append(said, "GPU total: "+rows.totals()+".")
	if line := leftOut(lost); line != "" {
		said = append(said, line)
	}
	printer.sentences(said)
	if len(solution.Configs) > 1 {
		others := texttab.New("Degrees", "Peak GiB", "Seconds").Compact()
		others.Right(1)
		others.Right(2)
		for _, way := range solution.Configs[:min(8, len(solution.Configs))] {
			others.Row(strings.TrimPrefix(degrees(way.Pipeline.Workload), ", "), inGiB(fullest(way.Devices).Predicted.PeakAllocatedBytes), secondsCell(way.Pipeline.Seconds))
		}
		say("%s\n", out.Block(others.String()))
	}
	printer.Judged(document.Verdict, document.Devices, document.Imbalance, 0)
}

// phasesOf returns the table of phases. Training has one more column.
func phasesOf(document *devicemap.Plan, rows *deviceTable, trains bool) *sheet {
	const states = 3 // index of that column
	table := &sheet{
		headings: []string{"Phase", "Peak by", "Weights", "Activ", "Buffers", "Peak", "Reserved", "Free", "Seconds", "Fits"},
		left:     []string{"Phase", "Peak by", "Fits"}, spare: []string{"Buffers", "Seconds"}, compact: true,
	}
	if trains {
		table.headings = slices.Insert(table.headings, states, "States")
	}
	for i := range document.Phases {
		phase := &document.Phases[i]
		device := fullest(phase.Devices)
		most := &device.Predicted
		row := []any{
			phase.Name, phase.Component, inGiB(most.ParamsBytes), inGiB(most.ActivationsBytes), inGiB(most.WorkspaceBytes + most.CommBuffersBytes + most.KVCacheBytes),
			inGiB(most.PeakAllocatedBytes), rows.reserved(device), inGiB(device.HeadroomBytes), secondsCell(phase.Seconds), fitWord(device.Verdict),
		}
		if trains {
			row = slices.Insert(row, states, any(inGiB(most.GradsBytes+most.OptimizerStateBytes)))
		}
		table.rows = append(table.rows, row)
	}
	return table
}

// weights returns the bytes of a component's parameters. In fp32 training that is not the type in
// its folder.
func weights(graph *modelgraph.Graph, work *phases.Workload) int64 {
	if work.Train != nil && work.Train.Precision == costmodel.FP32True {
		return 4 * graph.ParamCount()
	}
	return graph.ParamBytes()
}

// asked describes the images that a workload makes, or its training.
func asked(work *phases.Workload) string {
	text := fmt.Sprintf("batch %d × %d × %d, ", work.Batch, work.Width, work.Height)
	if training := work.Train; training != nil {
		if training.MicroBatches > 1 {
			text += fmt.Sprintf("%d micro-batches, ", training.MicroBatches)
		}
		return text + fmt.Sprintf("train LoRA rank %d, %s, recompute %s", training.LoRARank, training.Precision, training.Recompute)
	}
	return text + Plural(work.Frames, "frame") + ", " + Plural(work.Steps, "step")
}

// fullest returns the prediction of the device with the highest peak.
func fullest(devices []devicemap.Prediction) *devicemap.Prediction {
	most := &devices[0]
	for i := range devices {
		if devices[i].Predicted.PeakAllocatedBytes > most.Predicted.PeakAllocatedBytes {
			most = &devices[i]
		}
	}
	return most
}

// degrees describes the degrees of a workload.
func degrees(work phases.Workload) string {
	text := ""
	for _, degree := range []struct {
		name  string
		count int64
	}{{"cfg", work.CFGDegree}, {"ulysses", work.Ulysses}, {"ring", work.Ring}, {"pipefusion", work.PipeFusion}, {"fully sharded", work.FullyShardDegree}, {"ddp", work.Replicas}} {
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

// secondsCell returns a time, or a dash if it is unknown, as the GPU has no published rate.
func secondsCell(seconds float64) string {
	if seconds == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", seconds)
}
