//go:build cuda && linux && cgo && amd64

package witness

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

// Witness looks at GPUs beside the machines that run on them: what this process holds
// of the driver's, what each GPU has free, and whether that can be had. It takes part
// in each GPU's context, so that there is one to ask when all machines are closed, and
// has all that it needs from the beginning on: what it holds never changes.
type Witness struct {
	gpus []*witnessed
	own  []executor.Holding
}

// witnessed is a GPU that is looked at.
type witnessed struct {
	*driver.Device
	told    executor.MonitoredGPU
	handle  nvml.GPU
	context *driver.Context
	kernels *kernel.Kernels
	stream  *driver.Stream
	sums    *driver.Pinned
}

// Before says of a GPU, by UUID, how NVML is asked and who was on it before this process
// was, or why neither is known.
type Before func(uuid string) (handle nvml.GPU, processes []nvml.Process, unmeasured string)

// New begins to look at GPUs, by their places among those of the driver. Nothing of them
// is to be held by this process then.
func New(gpus []driver.Device, ordinals []int, before Before) (*Witness, error) {
	witness := new(Witness)
	for _, ordinal := range ordinals {
		if ordinal < 0 || ordinal >= len(gpus) {
			return nil, errors.Join(fmt.Errorf("GPU %d, and the driver shows %d", ordinal, len(gpus)), witness.Close())
		}
		gpu := &witnessed{Device: &gpus[ordinal], told: executor.MonitoredGPU{GPU: ordinal, UUID: gpus[ordinal].UUID, Name: gpus[ordinal].Name}}
		witness.gpus = append(witness.gpus, gpu)
		var processes []nvml.Process
		gpu.handle, processes, gpu.told.Unmeasured = before(gpu.UUID)
		if err := gpu.open(processes); err != nil {
			return nil, errors.Join(fmt.Errorf("GPU %d (%s): %w", ordinal, gpu.Name, err), witness.Close())
		}
	}
	witness.own = holdings()
	return witness, nil
}

// open makes all that looking needs, and runs each kernel once: drivers load one when
// it runs first. before are the processes that were there without this one.
func (gpu *witnessed) open(before []nvml.Process) (err error) {
	if gpu.context, err = gpu.Retain(); err != nil {
		return err
	}
	if gpu.told.GranuleBytes, err = gpu.Granule(); err != nil {
		return err
	}
	gpu.kernels = kernel.New(false)
	err = gpu.context.Within(func() (err error) {
		if gpu.sums, err = driver.Pin(pattern.SumsBytes); err == nil {
			gpu.stream, err = driver.NewStream()
		}
		if err != nil {
			return err
		}
		_, err = gpu.written(gpu.told.GranuleBytes)
		return err
	})
	if err != nil || gpu.told.Unmeasured != "" {
		return err
	}
	now, err := gpu.handle.Processes()
	if err != nil {
		gpu.told.Unmeasured = err.Error()
		return nil //nolint:nilerr // it is what is told
	}
	gpu.told.Process = nvml.Self(before, now)
	return nil
}

// GPUs are those that are looked at.
func (witness *Witness) GPUs() []executor.MonitoredGPU {
	var all []executor.MonitoredGPU
	for _, gpu := range witness.gpus {
		all = append(all, gpu.told)
	}
	return all
}

// Holdings is what the process holds of the driver's beside what the witness does.
func (witness *Witness) Holdings() []executor.Holding { return less(holdings(), witness.own) }

// holdings is everything that the process holds.
func holdings() []executor.Holding {
	var all []executor.Holding
	for _, held := range driver.Holdings() {
		all = append(all, executor.Holding(held))
	}
	return all
}

// less is what all holds beside own, by kind, and less where it holds less.
func less(all, own []executor.Holding) (beside []executor.Holding) {
	left := make(map[string]executor.Holding)
	for _, held := range own {
		left[held.Kind] = held
	}
	for _, held := range all {
		held.Count, held.Bytes = held.Count-left[held.Kind].Count, held.Bytes-left[held.Kind].Bytes
		delete(left, held.Kind)
		if held.Count != 0 || held.Bytes != 0 {
			beside = append(beside, held)
		}
	}
	for _, held := range own {
		if _, missing := left[held.Kind]; missing {
			beside = append(beside, executor.Holding{Kind: held.Kind, Count: -held.Count, Bytes: -held.Bytes})
		}
	}
	return beside
}

// Look reads what each GPU holds now.
func (witness *Witness) Look() ([]executor.MemoryReading, error) {
	all := make([]executor.MemoryReading, len(witness.gpus))
	for i, gpu := range witness.gpus {
		if err := gpu.look(&all[i]); err != nil {
			return nil, fmt.Errorf("GPU %d (%s): %w", gpu.Ordinal, gpu.Name, err)
		}
	}
	return all, nil
}

func (gpu *witnessed) look(seen *executor.MemoryReading) error {
	err := gpu.context.Within(func() (err error) {
		seen.DriverFree, _, err = driver.Room()
		return err
	})
	if err != nil || gpu.told.Unmeasured != "" {
		return err
	}
	memory, err := gpu.handle.Memory()
	if err != nil {
		return err
	}
	seen.NVMLUsed = &memory.Used
	processes, err := gpu.handle.Processes()
	if own := nvml.Numbered(processes, gpu.told.Process); own != nil && own.Used >= 0 {
		seen.Own = &own.Used
	}
	return err
}

// Refill takes all that a GPU has free, but margin bytes, in one piece, and finds out
// whether it holds what is written into it. gpu is a place in [Witness.GPUs].
func (witness *Witness) Refill(gpu int, margin int64) (done executor.RefillResult, err error) {
	of := witness.gpus[gpu]
	done.MarginBytes = margin
	begin := time.Now()
	err = of.context.Within(func() (err error) {
		if done.FreeBytes, _, err = driver.Room(); err != nil {
			return err
		}
		done.Bytes = max(0, done.FreeBytes-margin) / of.told.GranuleBytes * of.told.GranuleBytes
		if done.Bytes == 0 {
			return nil
		}
		right, err := of.written(done.Bytes)
		var told *driver.Error
		if errors.As(err, &told) && told.Code == driver.OutOfMemory {
			done.Refused = told
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

// Close gives the contexts back, with all that looking needed.
func (witness *Witness) Close() error {
	var all []error
	for _, gpu := range witness.gpus {
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
	witness.gpus = nil
	return errors.Join(all...)
}

// written maps bytes of the GPU, writes the pattern, reads it back, and gives them
// back: is it right? The context must be bound.
func (gpu *witnessed) written(bytes int64) (right bool, err error) {
	arena, err := gpu.Map(bytes)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, arena.Release()) }()
	of := pattern.Of(bytes)
	if err := of.Write(gpu.kernels, gpu.stream, arena.Address); err != nil {
		return false, err
	}
	return of.Holds(gpu.kernels, gpu.stream, arena.Address, gpu.sums)
}
