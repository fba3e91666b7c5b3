package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Front prints a row per point: the two values, the proof unless all are proved, and each GPU's
// layers.
func (printer *Printer) Front(front *planner.Front, topology *costmodel.Topology, defaults []string) {
	printer.Header(topology, defaults)
	headings := []string{"Step", "Used", "GPU"}
	if !front.Complete {
		headings = append(headings, "Bound", "Proof")
	}
	runs := len(headings)
	table := texttab.New(append(headings, "Layers")...).Compact()
	for column := range min(4, runs) {
		table.Right(column)
	}
	unit := stepUnit(front.Points)
	for _, point := range front.Points {
		row := []any{unit(point.Value), fmt.Sprintf("%.2f%%", 100*point.LargestShare), point.Bottleneck}
		if !front.Complete {
			row = append(row, unit(point.LowerBound), string(point.Status))
		}
		table.Row(append(row, printer.stages(point)+chosenBlocks(&point.Costs.Workload, &printer.work))...)
	}
	const values, proofs = 32, 58 // the width of the other columns
	width := printer.width - values
	if !front.Complete {
		width = printer.width - proofs
	}
	table.Wrap(runs, width)
	printer.printf("%s\n", out.Block(table.String()))
	whole := "every point is proved, and there are no others"
	if !front.Complete {
		whole = "not all is proved: there may be others, and better ones"
	}
	printer.printf("%s · %s\n", Plural(len(front.Points), "point"), whole)
}

// stepUnit returns a function that prints steps in one unit, with enough digits to distinguish
// neighbours on a front.
func stepUnit(points []*planner.Solution) func(float64) string {
	if slices.ContainsFunc(points, func(solution *planner.Solution) bool { return solution.Value >= 1 }) {
		return func(seconds float64) string { return fmt.Sprintf("%.4f s", seconds) }
	}
	return func(seconds float64) string { return fmt.Sprintf("%.3f ms", 1e3*seconds) }
}

// chosenBlocks says which blocks of a point are recomputed, and whose activations leave, if the
// request left that open.
func chosenBlocks(work, asked *costmodel.Workload) string {
	var out string
	if work.Recompute != asked.Recompute {
		out += "\nrecompute " + work.Recompute
	}
	if work.OffloadActivations != asked.OffloadActivations {
		out += "\noffload-activations " + cmp.Or(work.OffloadActivations, "none")
	}
	return out
}

// stages lists the layers of each GPU that has some, one per line if there are few.
func (printer *Printer) stages(point *planner.Solution) string {
	if point.Map == nil {
		return "the whole model on every GPU"
	}
	var parts []string
	for device := range point.Devices {
		if runs := printer.runs(point.Map, devicemap.Device(device)); runs != nothing {
			parts = append(parts, fmt.Sprintf("%d: %s", device, runs))
		}
	}
	const few = 8
	if len(parts) <= few {
		return strings.Join(parts, "\n")
	}
	return strings.Join(parts, "; ")
}
