package show

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// deviceTable has a row for each GPU: its layers, the bytes at its peak by category, the
// allocator's reserve, and the free bytes. It leaves out categories that no GPU has.
type deviceTable struct {
	*Printer
	placed  devicemap.Map
	devices []devicemap.Prediction
	unit    scale
}

// The verdicts of [devicemap.Verdict].
const (
	fits       = devicemap.Verdict("fits")
	tight      = devicemap.Verdict("tight")
	doesNotFit = devicemap.Verdict("no")
)

// Devices prints the table of the GPUs, and the units on no GPU.
func (printer *Printer) Devices(placed devicemap.Map, devices []devicemap.Prediction) {
	placed = slices.Clone(placed)
	for unit, device := range placed {
		if int(device) >= len(devices) { // a checked map may name any device
			placed[unit] = devicemap.Nowhere
		}
	}
	rows := &deviceTable{Printer: printer, placed: placed, devices: devices}
	var largest int64
	for device := range devices {
		largest = max(largest, devices[device].Predicted.PeakAllocatedBytes+devices[device].Predicted.OverheadBytes)
	}
	rows.unit = scaleFor(largest)
	table, left := rows.fitting()
	printer.printf("%s\n", out.Block(table))
	printer.sentences(rows.units(left))
	for _, tier := range []devicemap.Device{devicemap.CPU, devicemap.Disk, devicemap.Nowhere} {
		if runs := printer.runs(placed, tier); placed != nil && runs != nothing {
			printer.printf("on %s: %s\n", tierName(tier), runs)
		}
	}
}

func tierName(tier devicemap.Device) string {
	if tier == devicemap.Nowhere {
		return "no single device of these, not counted"
	}
	return "the " + tier.String()
}

// column is one column of the table.
type column struct {
	heading string
	cell    func(prediction *devicemap.Prediction) string
	// spare orders the columns that a narrow terminal drops; 0: always shown.
	spare int
}

// columns returns the columns after the layers that are not empty.
func (rows *deviceTable) columns() []column {
	var columns []column
	for i := range categories {
		of := categories[i].of
		if slices.ContainsFunc(rows.devices, func(prediction devicemap.Prediction) bool { return of(&prediction.Predicted) > 0 }) {
			columns = append(columns, column{categories[i].heading, func(prediction *devicemap.Prediction) string { return rows.unit.print(of(&prediction.Predicted)) }, categories[i].spare})
		}
	}
	columns = append(columns, column{heading: "Peak", cell: rows.peak})
	if rows.usual() {
		columns = append(columns, column{heading: "Usual", cell: func(prediction *devicemap.Prediction) string {
			return rows.unit.print(prediction.Predicted.UsualPeakBytes)
		}})
	}
	if rows.pooled() {
		columns = append(columns, column{heading: "Reserved", cell: rows.reserved})
	}
	columns = append(columns, column{heading: "Used", cell: rows.used}, column{heading: "Free", cell: func(prediction *devicemap.Prediction) string {
		return rows.unit.print(prediction.HeadroomBytes)
	}})
	if slices.ContainsFunc(rows.devices, func(prediction devicemap.Prediction) bool { return prediction.Verdict != fits }) {
		columns = append(columns, column{heading: "Fits", cell: func(prediction *devicemap.Prediction) string { return fitWord(prediction.Verdict) }})
	}
	return columns
}

// peak returns the predicted peak, or its range if compilation leaves it open.
func (rows *deviceTable) peak(prediction *devicemap.Prediction) string {
	if ends := prediction.Predicted.PeakRangeBytes; rows.work.Compile && len(ends) == 2 {
		if low, high := rows.unit.print(ends[0]), rows.unit.print(ends[1]); low != high {
			return low + "–" + high
		}
	}
	return least(&prediction.Predicted) + rows.unit.print(prediction.Predicted.PeakAllocatedBytes)
}

// fitWord returns a verdict for the column Fits.
func fitWord(verdict devicemap.Verdict) string {
	if verdict == fits {
		return "yes"
	}
	return string(verdict)
}

// usual reports that most batches are smaller than the largest.
func (rows *deviceTable) usual() bool {
	return slices.ContainsFunc(rows.devices, func(prediction devicemap.Prediction) bool { return prediction.Predicted.UsualPeakBytes > 0 })
}

// pooled reports that an allocator reserves more than the peak.
func (rows *deviceTable) pooled() bool {
	return rows.work.Mode != costmodel.Serve && slices.ContainsFunc(rows.devices, func(prediction devicemap.Prediction) bool { return prediction.Predicted.SlackBytes[1] > 0 })
}

// reserved returns the range of bytes that the allocator reserves at the peak.
func (rows *deviceTable) reserved(prediction *devicemap.Prediction) string {
	short := rows.unit
	short.digits = min(short.digits, 1)
	p := &prediction.Predicted
	low, high := short.print(p.PeakAllocatedBytes+p.SlackBytes[0]), short.print(p.PeakAllocatedBytes+p.SlackBytes[1])
	if low == high {
		return high
	}
	return low + "–" + high
}

// used returns the share of the budget, in red if it exceeds 100 %.
func (rows *deviceTable) used(prediction *devicemap.Prediction) string {
	share := fmt.Sprintf("%.1f%%", 100*prediction.Share)
	if rows.colour && prediction.Share > 1 {
		return text.FgRed.Sprint(share)
	}
	return share
}

// narrowest is the least width of the column of layers.
const narrowest = 16

// fitting returns the table within the width. It first wraps the layers, then drops columns, and
// returns the headings of these.
func (rows *deviceTable) fitting() (table string, left []string) {
	columns := rows.columns()
	for {
		rendered, width := rows.render(columns)
		spare := -1
		for i := range columns {
			if columns[i].spare > 0 && (spare < 0 || columns[i].spare < columns[spare].spare) {
				spare = i
			}
		}
		if width <= rows.width || spare < 0 {
			return rendered, left
		}
		left = append(left, columns[spare].heading)
		columns = slices.Delete(columns, spare, spare+1)
	}
}

// render lays out the table. If it is wider than the terminal, it wraps the layers.
func (rows *deviceTable) render(columns []column) (table string, width int) {
	headings := []string{"GPU", "Layers"}
	for i := range columns {
		headings = append(headings, columns[i].heading)
	}
	const layers = 1
	made := texttab.New(headings...).Compact()
	for at := range headings {
		if at != layers && headings[at] != "Fits" {
			made.Right(at)
		}
	}
	for device := 0; device < len(rows.devices); {
		end := device + 1
		for end < len(rows.devices) && rows.sameRow(device, end) {
			end++
		}
		made.Row(rows.row(columns, device, end)...)
		device = end
	}
	made.Fit(layers, narrowest, rows.width)
	return made.String(), made.Width()
}

// sameRow reports whether one row serves devices a and b: both are idle, run the whole model with
// equal bytes, or are GPUs of one stage.
func (rows *deviceTable) sameRow(a, b int) bool {
	first, second := &rows.devices[a], &rows.devices[b]
	idle := first.Units == 0 && second.Units == 0
	if rows.FirstOf != nil && rows.FirstOf(a) != rows.FirstOf(b) {
		return idle && first.Budget == second.Budget
	}
	stage := rows.FirstOf != nil || rows.placed != nil && second.Units > 0 && second.Units == first.Units && rows.runs(rows.placed, devicemap.Device(b)) == nothing
	replica := rows.placed == nil && reflect.DeepEqual(first.Predicted, second.Predicted)
	return first.Budget == second.Budget && (idle || replica || stage && first.Predicted.PeakAllocatedBytes == second.Predicted.PeakAllocatedBytes)
}

// row returns the row of a device, or of equal devices up to end.
func (rows *deviceTable) row(columns []column, deviceIndex, end int) []any {
	device := &rows.devices[deviceIndex]
	name := fmt.Sprint(deviceIndex)
	if end > deviceIndex+1 {
		name = fmt.Sprintf("%d–%d", deviceIndex, end-1)
	}
	of := deviceIndex
	if rows.FirstOf != nil {
		of = rows.FirstOf(deviceIndex)
	}
	cells := []any{name, rows.runs(rows.placed, devicemap.Device(of))}
	for i := range columns {
		cells = append(cells, columns[i].cell(device))
	}
	return cells
}

// units explains the figures: the unit, the contents of Used, each GPU's total, and the columns
// left out.
func (rows *deviceTable) units(left []string) []string {
	said := []string{rows.unit.name + " at each GPU's peak."}
	if rows.usual() {
		said = append(said, "Usual is the peak of the usual batch.")
	}
	if rows.pooled() {
		said = append(said, "Reserved is the allocator's pool"+rows.banded()+".")
	}
	if context := rows.contexts(); context != "" {
		said = append(said, "Used and Free count the "+Overhead(rows.work.Mode)+" ("+context+").")
	}
	said = append(said, "GPU total: "+rows.totals()+".")
	if host, _ := devicemap.HostMemory(rows.devices, &costmodel.Topology{}); host > 0 {
		said = append(said, "Offloaded activations take "+costmodel.Bytes(host).String()+" of host memory.")
	}
	if len(left) > 0 {
		said = append(said, "Columns left out: "+strings.Join(left, ", ")+".")
	}
	return said
}

// banded says that the pool belongs to the peak itself, if the peak's band ends above the pool.
func (rows *deviceTable) banded() string {
	if slices.ContainsFunc(rows.devices, func(device devicemap.Prediction) bool {
		p := &device.Predicted
		return len(p.PeakRangeBytes) == 2 && p.PeakRangeBytes[1] > p.PeakAllocatedBytes+p.SlackBytes[1]
	}) {
		return " at this peak, without the peak's band"
	}
	return ""
}

// contexts returns the memory of devices with layers outside the allocator; empty if there is none.
func (rows *deviceTable) contexts() string {
	var least, most int64
	for i := range rows.devices {
		if overhead := rows.devices[i].Predicted.OverheadBytes; overhead > 0 {
			most = max(most, overhead)
			if least == 0 || overhead < least {
				least = overhead
			}
		}
	}
	switch low, high := rows.unit.print(least), rows.unit.print(most); {
	case most == 0:
		return ""
	case low != high:
		return low + "–" + high
	default:
		return high
	}
}

// totals returns the capacities, and their usable part.
func (rows *deviceTable) totals() string {
	var parts []string
	for i := 0; i < len(rows.devices); {
		total, end := rows.total(i), i+1
		for end < len(rows.devices) && rows.total(end) == total {
			end++
		}
		if end-i > 1 && end-i < len(rows.devices) {
			total = fmt.Sprintf("%d × %s", end-i, total)
		}
		parts = append(parts, total)
		i = end
	}
	const most = 4
	if len(parts) > most {
		parts = append(parts[:most], "…")
	}
	return strings.Join(parts, ", ")
}

func (rows *deviceTable) total(device int) string {
	prediction := &rows.devices[device]
	total := costmodel.Bytes(prediction.CapacityBytes).String()
	if prediction.ReservedBytes > 0 {
		total += " (" + costmodel.Bytes(prediction.Budget).String() + " usable)"
	}
	return total
}
