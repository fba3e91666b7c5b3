package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
)

// part returns the name of a plan's device: GPU, or "device" if a GPU has several devices or
// another number.
func (rows *runTables) part() string {
	for i := range rows.GPUs {
		if gpu := &rows.GPUs[i]; len(gpu.Devices) != 1 || gpu.Devices[0] != gpu.GPU {
			return "device"
		}
	}
	return "GPU"
}

// shared reports that some GPU has several devices.
func (rows *runTables) shared() bool {
	return slices.ContainsFunc(rows.GPUs, func(gpu report.GPU) bool { return len(gpu.Devices) > 1 })
}

// loaded returns the speed of loading values into the GPUs' arenas; empty on a processor.
func (rows *runTables) loaded() string {
	loading := rows.Loading
	if loading == nil || loading.Seconds <= 0 {
		return ""
	}
	disk := ""
	if loading.DiskBytes > 0 {
		disk = fmt.Sprintf("; %v of it from the disk, %.3g GB/s", costmodel.Bytes(loading.DiskBytes), loading.DiskBytesPerSecond/1e9)
	}
	return fmt.Sprintf("loaded %v in %s, %.3g GB/s%s\n", costmodel.Bytes(loading.Bytes), Seconds(loading.Seconds), loading.BytesPerSecond/1e9, disk)
}

// gpus returns a row per GPU: the process's predicted memory and the driver's measurement, without
// memory used before; empty if no GPU was used.
func (rows *runTables) gpus() string {
	if len(rows.GPUs) == 0 {
		return ""
	}
	shared := rows.part() != "GPU"
	headings := []string{"GPU", ""}
	if shared {
		headings = append(headings, "devices")
	}
	first := len(headings)
	headings = append(headings, "holds,\npredicted", "\nmeasured", "apart", "context", "when ready", "at fences", "at the end")
	table := texttab.New(headings...)
	table.Right(0)
	for column := first; column < len(headings); column++ {
		table.Right(column)
	}
	for i := range rows.GPUs {
		gpu := &rows.GPUs[i]
		cells := []any{gpu.GPU, out.Cell(gpu.Name)}
		if shared {
			cells = append(cells, strings.Trim(fmt.Sprint(gpu.Devices), "[]"))
		}
		table.Row(append(cells, usedBy(gpu)...)...)
	}
	const name = 1
	table.Fit(name, len("NVIDIA"), rows.width)
	return "\n" + table.String() + "\n" + rows.links()
}

// usedBy returns the memory of a GPU's process at moments of the run.
func usedBy(gpu *report.GPU) []any {
	predicted := costmodel.Bytes(gpu.PredictedUsedBytes).String()
	if gpu.Measured == nil || gpu.DeviceUsedBytes == nil {
		return []any{predicted, "–", "–", "–", "–", "–", "–"}
	}
	took := func(bytes int64) string { return signed(bytes - gpu.Measured.BeforeBytes) }
	fences := "–"
	if gpu.Measured.Fences > 0 {
		fences = took(gpu.Measured.FenceHighBytes)
		if low := took(gpu.Measured.FenceLowBytes); low != fences {
			fences = low + " to " + fences
		}
	}
	return []any{
		predicted, signed(*gpu.DeviceUsedBytes), signed(*gpu.DeviceUsedBytes - gpu.PredictedUsedBytes),
		took(gpu.Measured.ContextBytes), took(gpu.Measured.ReadyBytes), fences, took(gpu.Measured.AfterBytes),
	}
}

// signed prints bytes that may be negative.
func signed(bytes int64) string {
	if bytes < 0 {
		return "−" + costmodel.Bytes(-bytes).String()
	}
	return costmodel.Bytes(bytes).String()
}
