package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Run prints what a run measured: the arenas beside their plan, the losses,
// where the time went, what was generated, and the verdict.
func (printer *Printer) Run(placed devicemap.Map, ran *report.Report) {
	rows := &runTables{Printer: printer, placed: placed, Report: ran}
	printer.printf("%s, %s%s: %s on the %s in place of %s\n%s\n%s%s", out.Cell(printer.graph.Name), printer.doing(), printer.how(),
		rows.did(), backends[ran.Backend], Plural(len(ran.Devices), "GPU"), out.Block(rows.arenas()), out.Block(rows.legend()), out.Block(rows.unwritten()))
	if len(ran.Steps) > 0 {
		printer.printf("%s%s%s", out.Block(rows.losses()), out.Block(rows.times()), out.Block(rows.generated()))
		printer.printf("%s\n", rows.speed())
	}
	printer.printf("imbalance %.3f, predicted %.3f\n%s: %s\n", ran.Imbalance.Measured, ran.Imbalance.Predicted, string(ran.Verdict), strings.Join(ran.Reasons, "; "))
}

var backends = map[string]string{"cpu": "CPU reference"}

type runTables struct {
	*Printer
	*report.Report

	placed devicemap.Map
}

func (rows *runTables) did() string {
	if len(rows.Steps) == 0 {
		return "loaded"
	}
	return "ran " + Plural(len(rows.Steps), "step")
}

// arenas is a row a GPU: its peak foretold and measured, and of every region how
// far it was written; where that is not to its end, of how much.
func (rows *runTables) arenas() string {
	regions := rows.regions()
	headings := append([]string{"GPU", "runs", "peak,\npredicted", "\nmeasured", "ratio"}, regions...)
	table := texttab.New(headings...)
	table.Right(0)
	for column := 2; column < len(headings); column++ {
		table.Right(column)
	}
	const runs, narrowest = 1, 16
	widest := 0
	for i := range rows.Report.Devices {
		device := &rows.Report.Devices[i]
		holds := rows.runs(rows.placed, devicemap.Device(device.Device))
		widest = max(widest, text.StringWidth(holds))
		cells := []any{device.Device, holds, sizeOf(device.Predicted.PeakAllocatedBytes), sizeOf(device.Measured.PeakAllocatedBytes), ratio(device)}
		for _, name := range regions {
			cells = append(cells, rows.reached(device, name))
		}
		table.Row(cells...)
	}
	if over := table.Width() - rows.width; over > 0 {
		table.Wrap(runs, max(narrowest, widest-over))
	}
	return table.String()
}

// regions are those that any device has, in the order of an arena.
func (rows *runTables) regions() []string {
	var names []string
	for i := range rows.Report.Devices {
		for _, region := range rows.Report.Devices[i].Regions {
			if !slices.Contains(names, region.Name) {
				names = append(names, region.Name)
			}
		}
	}
	return names
}

// holds is what lies in a region.
var holds = map[string]string{
	"state":   "weights, optimizer, caches",
	"slots":   "messages",
	"stream":  "what units hand on",
	"saved":   "for backward",
	"stack":   "of a step",
	"scratch": "of kernels",
}

// legend explains the regions.
func (rows *runTables) legend() string {
	var parts []string
	for _, name := range rows.regions() {
		if what := holds[name]; what != "" {
			parts = append(parts, name+" ("+what+")")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "written of regions: " + strings.Join(parts, ", ") + "\n"
}

func ratio(device *report.Device) string {
	if device.Ratio == nil {
		return "–"
	}
	return fmt.Sprintf("%.4f", *device.Ratio)
}

// reached is how far a device's region was written.
func (rows *runTables) reached(device *report.Device, name string) string {
	at := slices.IndexFunc(device.Regions, func(region report.Region) bool { return region.Name == name })
	if at < 0 {
		return "–"
	}
	region := &device.Regions[at]
	if region.TouchedBytes == region.PlannedBytes {
		return sizeOf(region.PlannedBytes)
	}
	return sizeOf(region.TouchedBytes) + " of " + sizeOf(region.PlannedBytes)
}

// sizeOf prints a size in a unit of its own: regions of one arena lie powers of
// a thousand apart.
func sizeOf(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return costmodel.Bytes(bytes).String()
}

// unwritten adds up what was never written, by reason.
func (rows *runTables) unwritten() string {
	var lines strings.Builder
	for i := range rows.Report.Devices {
		device := &rows.Report.Devices[i]
		var reasons []string
		bytes, buffers := map[string]int64{}, map[string]int{}
		for _, gap := range device.Unwritten {
			why := gap.Why
			if buffers[why] == 0 {
				reasons = append(reasons, why)
			}
			bytes[why] += gap.Bytes
			buffers[why]++
		}
		for at, why := range reasons {
			if at == 0 {
				fmt.Fprintf(&lines, "never written on GPU %d: ", device.Device)
			} else {
				lines.WriteString(", ")
			}
			fmt.Fprintf(&lines, "%v in %s (%s)", costmodel.Bytes(bytes[why]), Plural(buffers[why], "buffer"), out.Cell(why))
		}
		if len(reasons) > 0 {
			lines.WriteString("\n")
		}
	}
	return lines.String()
}

// stepRows is how many steps are shown: of more, the first and the last.
const stepRows = 12

// losses is the loss of every step, in training.
func (rows *runTables) losses() string {
	if rows.Steps[0].Loss == nil {
		return ""
	}
	table := texttab.New("step", "loss", "took")
	table.Right(0, 1, 2)
	for _, step := range shortened(int64(len(rows.Steps)), stepRows) {
		if step < 0 {
			table.Row("…", "", "")
			continue
		}
		table.Row(rows.Steps[step].Step, fmt.Sprintf("%.6f", *rows.Steps[step].Loss), Seconds(rows.Steps[step].Seconds))
	}
	return "\n" + table.String() + "\n"
}
