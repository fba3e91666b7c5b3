package hook

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/executor/watch"
	"github.com/devmap-dev/devmap/modelgraph"
)

// A process writes a few kB, mostly its arguments. A command has a few processes, or some hundred
// if it compiles.
const (
	maxBytes     = 1 << 20
	maxProcesses = 1 << 14
)

// Read returns the reports of the command's processes, by start time. The error names each
// malformed file; all other reports are returned anyway.
func (hook *Hook) Read() ([]watch.Process, error) {
	entries, err := os.ReadDir(hook.out())
	if err != nil {
		return nil, fmt.Errorf("memory report of torch: %w", err)
	}
	var processes []watch.Process
	var faults []error
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !strings.HasSuffix(entry.Name(), ".json") {
			continue // a file is incomplete if its process was killed while writing
		}
		if len(processes) == maxProcesses {
			faults = append(faults, fmt.Errorf("memory report of torch: more than %d processes", maxProcesses))
			break
		}
		data, err := modelgraph.ReadSmall(filepath.Join(hook.out(), entry.Name()), "memory report of torch", maxBytes)
		if err == nil {
			var process *watch.Process
			if process, err = parse(entry.Name(), data); err == nil {
				processes = append(processes, *process)
				continue
			}
		}
		faults = append(faults, fmt.Errorf("memory report of torch: %w", err))
	}
	slices.SortStableFunc(processes, func(first, second watch.Process) int { return first.PID - second.PID })
	return processes, errors.Join(faults...)
}

// parse reads one file. Any program of the command may have written it.
func parse(file string, data []byte) (*watch.Process, error) {
	var process watch.Process
	if err := modelgraph.DecodeJSON(file, data, &process, true); err != nil {
		return nil, err
	}
	fault := func(place, format string, args ...any) error {
		return &modelgraph.SyntaxError{File: file, Place: place, Msg: fmt.Sprintf(format, args...)}
	}
	if process.PID < 1 {
		return nil, fault("pid", "%d is no process", process.PID)
	}
	if !slices.Contains([]watch.Moment{watch.AtExit, watch.AtOutOfMemory, watch.WhileRunning}, process.At) {
		return nil, fault("at", "%q is not %q, %q or %q", process.At, watch.AtExit, watch.AtOutOfMemory, watch.WhileRunning)
	}
	for i := range process.GPUs {
		gpu := &process.GPUs[i]
		place := fmt.Sprintf("gpus[%d]", i)
		if gpu.Index < 0 || slices.ContainsFunc(process.GPUs[:i], func(other watch.ProcessGPU) bool { return other.Index == gpu.Index }) {
			return nil, fault(place+".index", "%d is negative, or there twice", gpu.Index)
		}
		for _, figure := range []int64{gpu.AllocatedBytes, gpu.ReservedBytes, gpu.OutOfMemory, gpu.Retries} {
			if figure < 0 {
				return nil, fault(place, "%d is less than nothing", figure)
			}
		}
		if gpu.AllocatedPeakBytes < gpu.AllocatedBytes || gpu.ReservedPeakBytes < gpu.ReservedBytes || max(gpu.AllocatedPeakBytes, gpu.ReservedPeakBytes) > maxFigure {
			return nil, fault(place, "no peak is %d allocated and %d reserved, with %d and %d at the end", gpu.AllocatedPeakBytes, gpu.ReservedPeakBytes, gpu.AllocatedBytes, gpu.ReservedBytes)
		}
	}
	if failed := process.Failed; failed != nil && min(int64(failed.Index), failed.WantedBytes, failed.FreeBytes) < 0 {
		return nil, fault("failed", "%d bytes on GPU %d with %d free are less than nothing", failed.WantedBytes, failed.Index, failed.FreeBytes)
	}
	return &process, nil
}

// maxFigure is larger than any GPU, and sums of it do not overflow.
const maxFigure = 1 << 48
