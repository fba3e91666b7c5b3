//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
)

// tuning is all GPUs, each with a file.
type tuning struct {
	*testing.T
	machine *machine
	files   []*os.File
	links   float64 // GB/s
	shape   transfer.Shape
}

// rangesOf are the values that some of a file's bytes are, in tensors of a size.
type rangesOf func(file *os.File, begin, end, size, step int64) []executor.Upload

func tuned(t *testing.T, gpus int) *tuning {
	t.Helper()
	tuning := &tuning{T: t}
	var text strings.Builder
	devices := make([]int, gpus)
	for i := range devices {
		devices[i] = i
		fmt.Fprintf(&text, "device %d arena %d budget %[2]d\n", i, *tuneBytes)
	}
	tuning.files = make([]*os.File, gpus)
	for i := range tuning.files {
		path := filepath.Join(*tuneFolder, fmt.Sprint("devmap-tune-", os.Getpid(), "-", i))
		t.Cleanup(func() { _ = os.Remove(path) })
		tuning.files[i] = randomFile(t, path, *tuneBytes)
	}
	tuning.machine = opened(t, made(t, executor.GPUOptions{Devices: devices}), parsed(t, text.String()))
	tuning.links = tuning.copies()
	return tuning
}

// copies is the rate of copies from pinned memory to all GPUs at once.
func (tuning *tuning) copies() (rate float64) {
	const size, turns = 256 << 20, 8
	pinned := make([]*driver.Pinned, len(tuning.machine.devices))
	each := func(call func(device *device, number int) error) {
		var all sync.WaitGroup
		for number, device := range tuning.machine.devices {
			all.Go(func() {
				if err := device.do(func() error { return call(device, number) }); err != nil {
					tuning.Error(err)
				}
			})
		}
		all.Wait()
	}
	each(func(_ *device, number int) (err error) {
		pinned[number], err = driver.PinLarge(size)
		return err
	})
	for range 3 {
		begin := time.Now()
		each(func(device *device, number int) error {
			for range turns {
				if err := device.host.Up(device.at(0), pinned[number].Data[:min(size, device.plan.Arena)]); err != nil {
					return err
				}
			}
			return device.host.Synchronize()
		})
		rate = max(rate, float64(turns*min(size, *tuneBytes)*int64(len(pinned)))/time.Since(begin).Seconds()/1e9)
	}
	each(func(_ *device, number int) error { return pinned[number].Free() })
	return rate
}

// both are the rates of copies from pinned memory to all GPUs and of so many that read alone,
// at once: what both together take of the host.
func (tuning *tuning) both(readers int) (copied, read float64) {
	const size, step, span = 8 << 20, 256 << 10, 400 * time.Millisecond
	var up, down atomic.Int64
	var stop atomic.Bool
	var all sync.WaitGroup
	for number := range readers {
		all.Go(func() {
			buffer := make([]byte, step)
			for at := *tuneBytes / int64(readers) * int64(number); !stop.Load(); at += step {
				bytes, _ := tuning.files[number%len(tuning.files)].ReadAt(buffer, at%*tuneBytes)
				_ = checksum.Of(buffer[:bytes/8*8])
				down.Add(int64(bytes))
			}
		})
	}
	for _, device := range tuning.machine.devices {
		all.Go(func() {
			if err := device.do(func() error { return filling(device, size, &up, &stop) }); err != nil {
				tuning.Error(err)
			}
		})
	}
	time.Sleep(span / 4) // all of them are at it
	ups, downs, begin := up.Load(), down.Load(), time.Now()
	time.Sleep(span)
	ups, downs = up.Load()-ups, down.Load()-downs
	seconds := time.Since(begin).Seconds()
	stop.Store(true)
	all.Wait()
	return float64(ups) / seconds / 1e9, float64(downs) / seconds / 1e9
}

// filling copies from pinned memory to a GPU until it is to stop.
func filling(device *device, size int64, copied *atomic.Int64, stop *atomic.Bool) error {
	const turns = 16
	pinned, err := driver.PinLarge(size)
	for err == nil && !stop.Load() {
		for range turns {
			err = errors.Join(err, device.host.Up(device.at(0), pinned.Data[:size]))
		}
		err = errors.Join(err, device.host.Synchronize())
		copied.Add(turns * size)
	}
	return errors.Join(err, pinned.Free())
}

// reading is the rate at which so many read the files, each into a buffer of its own.
func (tuning *tuning) reading(readers int, step int64, summed bool) float64 {
	var all sync.WaitGroup
	begin := time.Now()
	whole := int64(0)
	for number := range readers {
		file, share := tuning.files[number%len(tuning.files)], min(*tuneBytes, 512<<20)
		whole += share
		all.Go(func() {
			buffer := make([]byte, step)
			from := *tuneBytes / int64(readers) * int64(number)
			for at := int64(0); at < share; at += step {
				read, _ := file.ReadAt(buffer, (from+at)%*tuneBytes)
				if summed {
					_ = checksum.Of(buffer[:read/8*8])
				}
			}
		})
	}
	all.Wait()
	return float64(whole) / time.Since(begin).Seconds() / 1e9
}

// turning is the rate at which readers fill places of as many bytes one after another,
// whoever comes: so a ring is filled, and here no one takes from it.
func (tuning *tuning) turning(readers, bytes int) float64 {
	const step, turns = 512 << 10, 24 << 10
	const both = syscall.PROT_READ | syscall.PROT_WRITE
	buffer, err := syscall.Mmap(-1, 0, bytes, both, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		tuning.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(buffer) }()
	_ = syscall.Madvise(buffer, syscall.MADV_HUGEPAGE)
	clear(buffer)
	var next atomic.Int64
	var all sync.WaitGroup
	most := min(turns, *tuneBytes*int64(len(tuning.files))/step)
	begin := time.Now()
	for range readers {
		all.Go(func() {
			for turn := next.Add(1) - 1; turn < most; turn = next.Add(1) - 1 {
				into := buffer[turn*step%int64(bytes):][:step]
				file, from := turn%int64(len(tuning.files)), turn/int64(len(tuning.files))*step%*tuneBytes
				_, _ = tuning.files[file].ReadAt(into, from)
				_ = checksum.Of(into)
			}
		})
	}
	all.Wait()
	return float64(most*step) / time.Since(begin).Seconds() / 1e9
}

// cut gives every GPU a ring of another shape, which is pinned then.
func (tuning *tuning) cut(shape transfer.Shape) {
	tuning.shape = shape
	var all sync.WaitGroup
	for _, device := range tuning.machine.devices {
		all.Go(func() {
			if err := device.do(func() error {
				err := device.gpu.ring.Close()
				device.gpu.ring = transfer.New(shape)
				device.end.Ring = device.gpu.ring
				device.gpu.ring.Make(device.context)
				if err != nil {
					return err
				}
				return device.end.Prime(device.kernels)
			}); err != nil {
				tuning.Fatal(err)
			}
		})
	}
	all.Wait()
}

// rates are those of a few loads of all files, the slowest first.
func (tuning *tuning) rates(readers, share int, of rangesOf) (found []float64) {
	for range 3 {
		var all sync.WaitGroup
		begin := time.Now()
		for number, device := range tuning.machine.devices {
			tensors := of(tuning.files[number], 0, *tuneBytes, 33<<20, int64(min(share, 256<<10)))
			loads := make([]transfer.Load, len(tensors))
			for i := range tensors {
				loads[i] = transfer.Load{End: device.end, Offset: tensors[i].Offset, Values: tensors[i].Values}
			}
			all.Go(func() {
				if err := device.gpu.ring.Upload(context.Background(), loads, transfer.Workers{Readers: readers}, time.Minute, func(int64) {}); err != nil {
					tuning.Error(err)
				}
			})
		}
		all.Wait()
		found = append(found, float64(*tuneBytes*int64(len(tuning.files)))/time.Since(begin).Seconds()/1e9)
	}
	slices.Sort(found)
	return found
}

// unread are ranges without reads, to measure the ring alone.
func unread(file *os.File, begin, end, size, step int64) []executor.Upload {
	all := ranges(file, begin, end, size, step)
	for i := range all {
		all[i].Values.Read = func([]byte, int64) error { return nil }
	}
	return all
}
