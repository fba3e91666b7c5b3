//go:build cuda && linux && cgo && amd64

package monitor

import (
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/cuda/internal/pattern"
	"github.com/devmap-dev/devmap/executor/nvml"
)

// Monitor reads GPUs independently of the machines that run on them. It retains each GPU's context,
// so that one remains when all machines are closed. It allocates everything that it needs at the
// start: its own use never changes.
type Monitor struct {
	gpus []*monitored
	own  []executor.Holding
}

// monitored is a GPU with what monitoring it needs.
type monitored struct {
	*driver.Device
	info    executor.MonitoredGPU
	handle  nvml.GPU
	context *driver.Context
	kernels *kernel.Kernels
	stream  *driver.Stream
	sums    *driver.Pinned
}

// Before returns, for a GPU by UUID, NVML's handle and the processes that were on it before this
// one, or why neither is known.
type Before func(uuid string) (handle nvml.GPU, processes []nvml.Process, unmeasured string)

// New begins to monitor GPUs, given by the driver's numbers. This process must not have used any of
// them before.
func New(gpus []driver.Device, ordinals []int, before Before) (*Monitor, error) {
	monitor := new(Monitor)
	for _, ordinal := range ordinals {
		if ordinal < 0 || ordinal >= len(gpus) {
			return nil, errors.Join(fmt.Errorf("GPU %d, and the driver shows %d", ordinal, len(gpus)), monitor.Close())
		}
		gpu := &monitored{Device: &gpus[ordinal], info: executor.MonitoredGPU{GPU: ordinal, UUID: gpus[ordinal].UUID, Name: gpus[ordinal].Name}}
		monitor.gpus = append(monitor.gpus, gpu)
		var processes []nvml.Process
		gpu.handle, processes, gpu.info.Unmeasured = before(gpu.UUID)
		if err := gpu.open(processes); err != nil {
			return nil, errors.Join(fmt.Errorf("GPU %d (%s): %w", ordinal, gpu.Name, err), monitor.Close())
		}
	}
	monitor.own = holdings()
	return monitor, nil
}

// open makes everything that a look needs, and runs each kernel once: drivers load a kernel when it
// first runs. The processes in before are those without this one.
func (gpu *monitored) open(before []nvml.Process) (err error) {
	if gpu.context, err = gpu.Retain(); err != nil {
		return err
	}
	if gpu.info.GranuleBytes, err = gpu.Granule(); err != nil {
		return err
	}
	gpu.kernels = kernel.New(false, 0)
	err = gpu.context.Within(func() (err error) {
		if gpu.sums, err = driver.Pin(pattern.SumsBytes); err == nil {
			gpu.stream, err = driver.NewStream()
		}
		if err != nil {
			return err
		}
		_, err = gpu.written(gpu.info.GranuleBytes)
		return err
	})
	if err != nil || gpu.info.Unmeasured != "" {
		return err
	}
	now, err := gpu.handle.Processes()
	if err != nil {
		gpu.info.Unmeasured = err.Error()
		return nil //nolint:nilerr // it is in the report
	}
	gpu.info.Process = nvml.Self(before, now)
	return nil
}

// GPUs returns the monitored GPUs.
func (monitor *Monitor) GPUs() []executor.MonitoredGPU {
	var all []executor.MonitoredGPU
	for _, gpu := range monitor.gpus {
		all = append(all, gpu.info)
	}
	return all
}

// Holdings returns the driver's objects of the process, without the monitor's own.
func (monitor *Monitor) Holdings() []executor.Holding { return less(holdings(), monitor.own) }

// holdings returns the driver's objects of the process.
func holdings() []executor.Holding {
	var all []executor.Holding
	for _, holding := range driver.Holdings() {
		all = append(all, executor.Holding(holding))
	}
	return all
}

// less returns the difference of all and own, by kind; it is negative if own has more.
func less(all, own []executor.Holding) (others []executor.Holding) {
	left := make(map[string]executor.Holding)
	for _, holding := range own {
		left[holding.Kind] = holding
	}
	for _, holding := range all {
		holding.Count, holding.Bytes = holding.Count-left[holding.Kind].Count, holding.Bytes-left[holding.Kind].Bytes
		delete(left, holding.Kind)
		if holding.Count != 0 || holding.Bytes != 0 {
			others = append(others, holding)
		}
	}
	for _, holding := range own {
		if _, missing := left[holding.Kind]; missing {
			others = append(others, executor.Holding{Kind: holding.Kind, Count: -holding.Count, Bytes: -holding.Bytes})
		}
	}
	return others
}

// Look reads the memory of each GPU.
func (monitor *Monitor) Look() ([]executor.MemoryReading, error) {
	all := make([]executor.MemoryReading, len(monitor.gpus))
	for i, gpu := range monitor.gpus {
		if err := gpu.look(&all[i]); err != nil {
			return nil, fmt.Errorf("GPU %d (%s): %w", gpu.Ordinal, gpu.Name, err)
		}
	}
	return all, nil
}

func (gpu *monitored) look(seen *executor.MemoryReading) error {
	err := gpu.context.Within(func() (err error) {
		seen.DriverFree, _, err = driver.FreeMemory()
		return err
	})
	if err != nil || gpu.info.Unmeasured != "" {
		return err
	}
	memory, err := gpu.handle.Memory()
	if err != nil {
		return err
	}
	seen.NVMLUsed = &memory.Used
	processes, err := gpu.handle.Processes()
	if own := nvml.Numbered(processes, gpu.info.Process); own != nil && own.Used >= 0 {
		seen.Own = &own.Used
	}
	return err
}

// Refill allocates all of a GPU's free memory but margin bytes in one piece. It checks that the
// memory keeps what is written into it. gpu is an index in [Monitor.GPUs].
func (monitor *Monitor) Refill(gpu int, margin int64) (done executor.RefillResult, err error) {
	of := monitor.gpus[gpu]
	done.MarginBytes = margin
	begin := time.Now()
	err = of.context.Within(func() (err error) {
		if done.FreeBytes, _, err = driver.FreeMemory(); err != nil {
			return err
		}
		done.Bytes = max(0, done.FreeBytes-margin) / of.info.GranuleBytes * of.info.GranuleBytes
		if done.Bytes == 0 {
			return nil
		}
		right, err := of.written(done.Bytes)
		var driverErr *driver.Error
		if errors.As(err, &driverErr) && driverErr.Code == driver.OutOfMemory {
			done.Refused = driverErr
			return nil
		}
		done.Wrong = err == nil && !right
		return err
	})
	done.Took = time.Since(begin)
	if err != nil {
		err = fmt.Errorf("GPU %d (%s): %w", of.Ordinal, of.Name, err)
	}
	return done, err
}

// Close releases the contexts, and everything that monitoring needed.
func (monitor *Monitor) Close() error {
	var all []error
	for _, gpu := range monitor.gpus {
		if gpu.context == nil {
			continue
		}
		all = append(all, gpu.context.Within(func() error {
			var err error
			if gpu.stream != nil {
				err = gpu.stream.Destroy()
			}
			return errors.Join(err, gpu.sums.Free(), gpu.kernels.Unload())
		}), gpu.context.Release())
	}
	monitor.gpus = nil
	return errors.Join(all...)
}

// written maps bytes of the GPU, writes the pattern, reads it back and releases them. It
// reports whether the pattern is right. The context must be bound.
func (gpu *monitored) written(bytes int64) (right bool, err error) {
	arena, err := gpu.Map(bytes)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, arena.Release()) }()
	of := pattern.Of(bytes)
	if err := of.Write(gpu.kernels, gpu.stream, arena.Address); err != nil {
		return false, err
	}
	return of.Matches(gpu.kernels, gpu.stream, arena.Address, gpu.sums)
}
