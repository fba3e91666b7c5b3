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
func (p *Printer) Devices(placed devicemap.Map, devices []devicemap.Prediction) {
	t := &deviceTable{Printer: p, placed: placed, devices: devices}
	for i := range categories {
		if slices.ContainsFunc(devices, func(d devicemap.Prediction) bool { return categories[i].of(&d.Predicted) > 0 }) {
			t.shown = append(t.shown, &categories[i])
		}
	}
	for d := range devices {
		t.largest = max(t.largest, devices[d].Predicted.PeakAllocatedBytes+devices[d].Predicted.OverheadBytes)
	}
	t.unit = scaleFor(t.largest)
	p.printf("%s, %s%s (%s)\n%s\n%s", out.Cell(p.graph.Name), p.doing(), p.how(), t.unit.name, out.Block(t.render()), out.Block(t.legend()))
	for _, tier := range []devicemap.Device{devicemap.CPU, devicemap.Disk, devicemap.Nowhere} {
		if runs := p.runs(placed, tier); placed != nil && runs != nothing {
			p.printf("on %s: %s\n", tierName(tier), runs)
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
func (t *deviceTable) render() string {
	headings := []string{"GPU", "runs"}
	for _, c := range t.shown {
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
	for d := 0; d < len(t.devices); {
		end := d + 1
		for end < len(t.devices) && t.idle(d, end) {
			end++
		}
		table.Row(t.row(d, end)...)
		widest = max(widest, text.StringWidth(t.runs(t.placed, devicemap.Device(d))))
		d = end
	}
	if over := table.Width() - t.width; over > 0 {
		const narrowest = 16
		table.Wrap(runs, max(narrowest, widest-over))
	}
	return table.String()
}

// idle reports whether devices a and b both hold nothing and are alike, so
// that one row serves both.
func (t *deviceTable) idle(a, b int) bool {
	first, second := &t.devices[a], &t.devices[b]
	return first.Units == 0 && second.Units == 0 && first.Budget() == second.Budget()
}

// row is that of device d, or of the idle ones from d up to end.
func (t *deviceTable) row(d, end int) []any {
	device := &t.devices[d]
	name := fmt.Sprint(d)
	if end > d+1 {
		name = fmt.Sprintf("%d–%d", d, end-1)
	}
	cells := []any{name, t.runs(t.placed, devicemap.Device(d))}
	for _, c := range t.shown {
		cells = append(cells, t.unit.print(c.of(&device.Predicted)))
	}
	return append(cells, t.unit.print(device.Predicted.PeakAllocatedBytes), t.bar(device), t.unit.print(device.HeadroomBytes))
}

const barWidth = 16

// bar draws what a device needs, a stretch per category, on the scale of the
// device that needs most, so that bars compare; then its share of the budget.
func (t *deviceTable) bar(device *devicemap.Prediction) string {
	var bar strings.Builder
	var sum int64
	drawn := 0
	for _, c := range t.shown {
		sum += c.of(&device.Predicted)
		end := int(float64(sum)/float64(max(t.largest, 1))*barWidth + 0.5)
		if end > drawn {
			bar.WriteString(t.stretch(c, end-drawn))
			drawn = end
		}
	}
	share := fmt.Sprintf("%5.1f%%", 100*device.Share())
	if t.colour && device.Share() > 1 {
		share = text.FgRed.Sprint(share)
	}
	return fmt.Sprintf("%s%s %s", bar.String(), strings.Repeat("·", barWidth-drawn), share)
}

func (t *deviceTable) stretch(c *category, length int) string {
	if t.colour {
		return c.colour.Sprint(strings.Repeat("█", length))
	}
	return strings.Repeat(string(c.letter), length)
}

// legend explains the bar's letters or colours; empty where no bar is drawn.
func (t *deviceTable) legend() string {
	if len(t.shown) == 0 {
		return ""
	}
	var parts []string
	for _, c := range t.shown {
		if t.colour {
			parts = append(parts, c.colour.Sprint("█")+" "+c.name)
		} else {
			parts = append(parts, string(c.letter)+" "+c.name)
		}
	}
	head := "bar:"
	if t.colour {
		head = text.Faint.Sprint(head)
	}
	return head + " " + strings.Join(parts, ", ") + "\n"
}
