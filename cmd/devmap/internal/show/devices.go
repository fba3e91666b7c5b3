package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// deviceTable is a row per GPU: what runs there, the bytes at its peak by
// category, a bar of its budget, and what is left. Categories that no GPU has
// are left out.
type deviceTable struct {
	*Printer
	placed  devicemap.Map
	devices []devicemap.Prediction
	shown   []*category
	largest int64 // bytes of the device that needs most: the length of a whole bar
	unit    scale
}

// Devices prints the table of the GPUs, and what is on no GPU.
func (printer *Printer) Devices(placed devicemap.Map, devices []devicemap.Prediction) {
	rows := &deviceTable{Printer: printer, placed: placed, devices: devices}
	for i := range categories {
		if slices.ContainsFunc(devices, func(prediction devicemap.Prediction) bool { return categories[i].of(&prediction.Predicted) > 0 }) {
			rows.shown = append(rows.shown, &categories[i])
		}
	}
	for device := range devices {
		rows.largest = max(rows.largest, devices[device].Predicted.PeakAllocatedBytes+devices[device].Predicted.OverheadBytes)
	}
	rows.unit = scaleFor(rows.largest)
	printer.printf("%s, %s%s (%s)\n%s\n%s", out.Cell(printer.graph.Name), printer.doing(), printer.how(), rows.unit.name, out.Block(rows.render()), out.Block(rows.legend()))
	for _, tier := range []devicemap.Device{devicemap.CPU, devicemap.Disk, devicemap.Nowhere} {
		if runs := printer.runs(placed, tier); placed != nil && runs != nothing {
			printer.printf("on %s: %s\n", tierName(tier), runs)
		}
	}
}

func tierName(tier devicemap.Device) string {
	if tier == devicemap.Nowhere {
		return "no single device, not counted"
	}
	return "the " + tier.String()
}

// render lays the table out. Where it is wider than the terminal, what a
// device runs is wrapped.
func (rows *deviceTable) render() string {
	headings := []string{"GPU", "runs"}
	for _, c := range rows.shown {
		headings = append(headings, c.heading)
	}
	headings = append(headings, "peak", "share of its budget", "head-\nroom")
	const runs = 1
	bar := len(headings) - 2
	table := texttab.New(headings...)
	for column := range headings {
		if column != runs && column != bar {
			table.Right(column)
		}
	}
	widest := 0 // the longest run of all
	for device := 0; device < len(rows.devices); {
		end := device + 1
		for end < len(rows.devices) && rows.sameRow(device, end) {
			end++
		}
		table.Row(rows.row(device, end)...)
		widest = max(widest, text.StringWidth(rows.runs(rows.placed, devicemap.Device(device))))
		device = end
	}
	if over := table.Width() - rows.width; over > 0 {
		const narrowest = 16
		table.Wrap(runs, max(narrowest, widest-over))
	}
	return table.String()
}

// sameRow reports whether devices a and b are equal and both hold nothing, or are
// GPUs of one stage, so that one row serves both.
func (rows *deviceTable) sameRow(a, b int) bool {
	first, second := &rows.devices[a], &rows.devices[b]
	idle := first.Units == 0 && second.Units == 0
	stage := rows.placed != nil && second.Units > 0 && second.Units == first.Units && rows.runs(rows.placed, devicemap.Device(b)) == nothing
	return first.Budget == second.Budget && (idle || stage && first.Predicted.PeakAllocatedBytes == second.Predicted.PeakAllocatedBytes)
}

// row is that of a device, or of those that are like it up to end.
func (rows *deviceTable) row(deviceIndex, end int) []any {
	device := &rows.devices[deviceIndex]
	name := fmt.Sprint(deviceIndex)
	if end > deviceIndex+1 {
		name = fmt.Sprintf("%d–%d", deviceIndex, end-1)
	}
	cells := []any{name, rows.runs(rows.placed, devicemap.Device(deviceIndex))}
	for _, c := range rows.shown {
		cells = append(cells, rows.unit.print(c.of(&device.Predicted)))
	}
	return append(cells, rows.unit.print(device.Predicted.PeakAllocatedBytes), rows.bar(device), rows.unit.print(device.HeadroomBytes))
}

const barWidth = 16

// bar draws what a device needs, a stretch per category, on the scale of the
// device that needs most, so that bars compare; then its share of the budget.
func (rows *deviceTable) bar(device *devicemap.Prediction) string {
	var bar strings.Builder
	var sum int64
	columns := 0
	for _, c := range rows.shown {
		sum += c.of(&device.Predicted)
		end := int(float64(sum)/float64(max(rows.largest, 1))*barWidth + 0.5)
		if end > columns {
			bar.WriteString(rows.stretch(c, end-columns))
			columns = end
		}
	}
	share := fmt.Sprintf("%5.1f%%", 100*device.Share)
	if rows.colour && device.Share > 1 {
		share = text.FgRed.Sprint(share)
	}
	return fmt.Sprintf("%s%s %s", bar.String(), strings.Repeat("·", barWidth-columns), share)
}

func (rows *deviceTable) stretch(c *category, length int) string {
	if rows.colour {
		return c.colour.Sprint(strings.Repeat("█", length))
	}
	return strings.Repeat(string(c.letter), length)
}

// legend explains the bar's letters or colours; empty if there is no bar.
func (rows *deviceTable) legend() string {
	if len(rows.shown) == 0 {
		return ""
	}
	var parts []string
	for _, c := range rows.shown {
		if rows.colour {
			parts = append(parts, c.colour.Sprint("█")+" "+c.name)
		} else {
			parts = append(parts, string(c.letter)+" "+c.name)
		}
	}
	head := "bar:"
	if rows.colour {
		head = text.Faint.Sprint(head)
	}
	return head + " " + strings.Join(parts, ", ") + "\n"
}
