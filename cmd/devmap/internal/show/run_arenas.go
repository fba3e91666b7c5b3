package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// regions lists the regions of an arena from the bottom, and their contents.
var regions = []struct{ name, content string }{
	{"workspace", "of libraries"},
	{"state", "weights, optimizer, caches"},
	{"slots", "messages"},
	{"stream", "what units hand on"},
	{"saved", "for backward"},
	{"stack", "of a step"},
	{"scratch", "of kernels"},
}

// arenas returns a row per GPU: its predicted and its measured peak, and how far each region was
// written, with the region's size if that is not its end. If one table is too wide, the regions
// have a second one.
func (rows *runTables) arenas() string {
	var names []string
	for _, region := range regions {
		if rows.any(region.name) {
			names = append(names, region.name)
		}
	}
	peaks := []string{"runs", "peak,\npredicted", "\nmeasured", "ratio"}
	all := rows.arenaTable(peaks, names)
	all.Fit(1, narrowest, rows.width)
	if all.Width() <= rows.width {
		return all.String()
	}
	first := rows.arenaTable(peaks, nil)
	first.Fit(1, narrowest, rows.width)
	return first.String() + "\n\n" + rows.arenaTable(nil, names).String()
}

// arenaTable is a table of peaks, if it has their headings, and of regions. Adjacent idle GPUs
// share a row.
func (rows *runTables) arenaTable(peaks, names []string) *texttab.Table {
	table := texttab.New(slices.Concat([]string{rows.part()}, peaks, names)...)
	table.Right(0)
	for column := min(2, 1+len(peaks)); column < 1+len(peaks)+len(names); column++ {
		table.Right(column)
	}
	for i := 0; i < len(rows.Report.Devices); i++ {
		device := &rows.Report.Devices[i]
		name := fmt.Sprint(device.Device)
		for rows.idle(i) && i+1 < len(rows.Report.Devices) && rows.idle(i+1) {
			i++
			name = fmt.Sprintf("%d–%d", device.Device, rows.Report.Devices[i].Device)
		}
		cells := []any{name}
		if len(peaks) > 0 {
			cells = append(cells, rows.runs(rows.placed, devicemap.Device(device.Device)), sizeOf(device.Predicted.PeakAllocatedBytes), sizeOf(device.Measured.PeakAllocatedBytes), ratio(device))
		}
		for _, name := range names {
			cells = append(cells, reached(device, name))
		}
		table.Row(cells...)
	}
	return table
}

// idle reports a device without an arena.
func (rows *runTables) idle(device int) bool {
	return rows.Report.Devices[device].Predicted.PeakAllocatedBytes == 0 && len(rows.Report.Devices[device].Regions) == 0
}

// any reports that some device has a region.
func (rows *runTables) any(name string) bool {
	return slices.ContainsFunc(rows.Report.Devices, func(device report.Device) bool { return regionOf(&device, name) != nil })
}

func regionOf(device *report.Device, name string) *report.Region {
	at := slices.IndexFunc(device.Regions, func(region report.Region) bool { return region.Name == name })
	if at < 0 {
		return nil
	}
	return &device.Regions[at]
}

// legend explains the regions; empty if there is only the workspace, which is not written.
func (rows *runTables) legend() string {
	var parts []string
	for _, region := range regions[1:] {
		if rows.any(region.name) {
			parts = append(parts, region.name+" ("+region.content+")")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	parts[0] = "written of regions: " + parts[0]
	return joined(parts, ", ", "  ", rows.width) + "\n"
}

func ratio(device *report.Device) string {
	if device.Ratio == nil {
		return "–"
	}
	return fmt.Sprintf("%.4f", *device.Ratio)
}

// reached returns how far a device's region was written.
func reached(device *report.Device, name string) string {
	switch region := regionOf(device, name); {
	case region == nil:
		return "–"
	case region.TouchedBytes == region.PlannedBytes:
		return sizeOf(region.PlannedBytes)
	default:
		return sizeOf(region.TouchedBytes) + " of " + sizeOf(region.PlannedBytes)
	}
}

// sizeOf prints a size in its own unit: regions of one arena may differ by powers of a thousand.
func sizeOf(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return costmodel.Bytes(bytes).String()
}

// unwritten lists the buffers that were never written, with one line for adjacent GPUs with the
// same text.
func (rows *runTables) unwritten() string {
	var lines strings.Builder
	for i := 0; i < len(rows.Report.Devices); i++ {
		device := &rows.Report.Devices[i]
		said, name := left(device), fmt.Sprintf("%s %d", rows.part(), device.Device)
		for i+1 < len(rows.Report.Devices) && left(&rows.Report.Devices[i+1]) == said {
			i++
			name = fmt.Sprintf("%ss %d–%d", rows.part(), device.Device, rows.Report.Devices[i].Device)
		}
		if said != "" {
			lines.WriteString("never written on " + name + ": " + said + "\n")
		}
	}
	return lines.String()
}

// left sums the bytes of a device that were never written, by reason.
func left(device *report.Device) string {
	var reasons []string
	bytes, buffers := map[string]int64{}, map[string]int{}
	for _, gap := range device.Unwritten {
		if buffers[gap.Why] == 0 {
			reasons = append(reasons, gap.Why)
		}
		bytes[gap.Why] += gap.Bytes
		buffers[gap.Why]++
	}
	for at, why := range reasons {
		reasons[at] = fmt.Sprintf("%v in %s (%s)", costmodel.Bytes(bytes[why]), Plural(buffers[why], "buffer"), out.Cell(why))
	}
	return strings.Join(reasons, ", ")
}
