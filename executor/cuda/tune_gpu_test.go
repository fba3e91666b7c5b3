//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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

var (
	tuneBytes   = flag.Int64("tune-bytes", 2<<30, "of each GPU's file, in TestTunePour")
	tuneGPUs    = flag.Int("tune-gpus", 0, "how many take part; 0: all")
	tuneSeconds = flag.Float64("tune-seconds", 30, "after which TestTunePour begins with no other shape")
	tuneFolder  = flag.String("tune-folder", ".", "where its files lie")
)

// TestTunePour is how a ring's shape and the number of its readers are chosen: what some
// GPUs take at once, each out of a file of its own in the page cache, beside copies from
// pinned memory to all of them, beside reading alone, and beside a ring for which nothing
// is read. Every line says GB/s of all together; of rings the slowest and the fastest of three
// times, and the share of the links in the middle (at best).
func TestTunePour(t *testing.T) {
	onGPU(t)
	gpus := len(described(t))
	if *tuneGPUs > 0 {
		gpus = min(gpus, *tuneGPUs)
	}
	begun := time.Now()
	rig := tuned(t, gpus)
	t.Logf("%d GPUs, %d processors; memory nodes %s, of NVIDIA's devices %s", gpus, runtime.GOMAXPROCS(0),
		first("/sys/devices/system/node/online"), first("/sys/bus/pci/drivers/nvidia/*/numa_node"))
	t.Logf("files are made and GPUs open after %.1f s", time.Since(begun).Seconds())
	t.Logf("copies of pinned memory, all at once: %.1f", rig.links)
	for _, readers := range []int{1, 8, 15, 30, 45, 60} {
		if readers > 1 && readers >= runtime.GOMAXPROCS(0) {
			break
		}
		t.Logf("reading alone in steps of 256 KiB, %2d readers: %6.1f, summed up too %6.1f", readers,
			rig.reading(readers, 256<<10, false), rig.reading(readers, 256<<10, true))
	}
	taken, usual := transfer.ShapeFor(gpus), handsFor(gpus).Readers
	for _, bytes := range []int{16, 32, 64, 128, 256} {
		t.Logf("reading and summing up by turns into %3d MiB, %d readers: %6.1f", bytes, gpus*usual, rig.turning(gpus*usual, bytes<<20))
	}
	best, most := taken, rig.tell(taken, usual, "", ranges)
	rig.tell(taken, usual, ", nothing read, only summed up", unread)
	rig.tell(shapeOf(64<<20, 8<<20, 1<<20), usual, "", ranges)
	for _, shape := range shapes(taken, gpus) {
		if time.Since(begun).Seconds() > *tuneSeconds-6 {
			t.Log("the rest of the shapes is left out: their time is over")
			break
		}
		if rate := rig.tell(shape, usual, "", ranges); rate > most {
			best, most = shape, rate
		}
	}
	for _, shape := range slices.Compact([]transfer.Shape{best, taken}) {
		for _, readers := range []int{10, 12, 8, 7, 9, 14, 15} {
			if (readers+1)*gpus <= runtime.GOMAXPROCS(0) && readers != usual && time.Since(begun).Seconds() < *tuneSeconds {
				rig.tell(shape, readers, "", ranges)
			}
		}
	}
}

// first are the lines with which files begin.
func first(pattern string) string {
	paths, _ := filepath.Glob(pattern) //nolint:errcheck // it is sound
	var lines []string
	for _, path := range paths {
		text, _ := os.ReadFile(path) //nolint:errcheck // what is not there says nothing
		line, _, _ := strings.Cut(string(text), "\n")
		lines = append(lines, line)
	}
	return strings.Join(lines, " ")
}

// tell tells what GPUs take through rings of a shape, and is the rate in the middle.
func (rig *tuning) tell(shape transfer.Shape, readers int, what string, of rangesOf) float64 {
	if rig.shape != shape {
		rig.cut(shape)
	}
	found := rig.rates(readers, shape.Share, of)
	most, middle := found[len(found)-1], found[len(found)/2]
	rig.Logf("rings of %3d MiB, %2d × %4d KiB, shares of %4d KiB, %2d readers a GPU%s: %.1f to %.1f, %.3f of the links (%.3f)",
		len(rig.files)*shape.Parts*shape.Size>>20, shape.Parts, shape.Size>>10, shape.Share>>10, readers, what,
		found[0], most, middle/rig.links, most/rig.links)
	return middle
}

func shapeOf(ring, size, share int) transfer.Shape {
	return transfer.Shape{Parts: ring / size, Size: size, Share: share}
}

// shapes are those that are tried besides the one that is taken, the likeliest first: rings
// that together stay in caches or do not, of many parts, which cost calls, or of few, which
// leave nothing to read to while one is copied.
func shapes(taken transfer.Shape, gpus int) (all []transfer.Shape) {
	for _, share := range []int{256 << 10, 512 << 10, 128 << 10, 1 << 20} {
		for _, ring := range []int{64 << 20, 32 << 20, 128 << 20, 256 << 20} {
			for _, size := range []int{2 << 20, 1 << 20, 4 << 20, 8 << 20} {
				shape := shapeOf(ring/gpus, size, share)
				if shape.Parts >= 3 && shape.Parts <= 64 && shape.Size >= 2*share && shape != taken {
					all = append(all, shape)
				}
			}
		}
	}
	return all
}

// tuning is all GPUs, each with a file.
type tuning struct {
	*testing.T
	machine *machine
	files   []*os.File
	links   float64 // GB/s
	shape   transfer.Shape
}

// rangesOf are the values that some of a file's bytes are, in tensors of a size.
type rangesOf func(file *os.File, begin, end, size, step int64) []executor.Pour

func tuned(t *testing.T, gpus int) *tuning {
	rig := &tuning{T: t}
	var text strings.Builder
	devices := make([]int, gpus)
	for i := range devices {
		devices[i] = i
		fmt.Fprintf(&text, "device %d arena %d budget %[2]d\n", i, *tuneBytes)
	}
	rig.files = make([]*os.File, gpus)
	for i := range rig.files {
		path := filepath.Join(*tuneFolder, fmt.Sprint("devmap-tune-", os.Getpid(), "-", i))
		t.Cleanup(func() { _ = os.Remove(path) })
		rig.files[i] = drawnFile(t, path, *tuneBytes)
	}
	rig.machine = opened(t, made(t, Options{Devices: devices}), parsed(t, text.String()))
	rig.links = rig.copies()
	return rig
}

// copies is the rate of copies from pinned memory to all GPUs at once.
func (rig *tuning) copies() (rate float64) {
	const size, turns = 256 << 20, 8
	pinned := make([]*driver.Pinned, len(rig.machine.devices))
	each := func(call func(device *device, number int) error) {
		var all sync.WaitGroup
		for number, device := range rig.machine.devices {
			all.Go(func() {
				if err := device.do(func() error { return call(device, number) }); err != nil {
					rig.Error(err)
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

// reading is the rate at which so many read the files, each into room of its own.
func (rig *tuning) reading(readers int, step int64, summed bool) float64 {
	var all sync.WaitGroup
	begin := time.Now()
	whole := int64(0)
	for number := range readers {
		file, share := rig.files[number%len(rig.files)], min(*tuneBytes, 512<<20)
		whole += share
		all.Go(func() {
			room := make([]byte, step)
			from := *tuneBytes / int64(readers) * int64(number)
			for at := int64(0); at < share; at += step {
				read, _ := file.ReadAt(room, (from+at)%*tuneBytes) //nolint:errcheck // its end is no error
				if summed {
					_ = checksum.Of(room[:read/8*8])
				}
			}
		})
	}
	all.Wait()
	return float64(whole) / time.Since(begin).Seconds() / 1e9
}

// turning is the rate at which readers fill places of as many bytes one after another,
// whoever comes: so a ring is filled, and here nobody takes from it.
func (rig *tuning) turning(readers, bytes int) float64 {
	const step, turns = 512 << 10, 24 << 10
	const both = syscall.PROT_READ | syscall.PROT_WRITE
	room, err := syscall.Mmap(-1, 0, bytes, both, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		rig.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(room) }()
	_ = syscall.Madvise(room, syscall.MADV_HUGEPAGE)
	clear(room)
	var next atomic.Int64
	var all sync.WaitGroup
	most := min(turns, *tuneBytes*int64(len(rig.files))/step)
	begin := time.Now()
	for range readers {
		all.Go(func() {
			for turn := next.Add(1) - 1; turn < most; turn = next.Add(1) - 1 {
				into := room[turn*step%int64(bytes):][:step]
				file, from := turn%int64(len(rig.files)), turn/int64(len(rig.files))*step%*tuneBytes
				_, _ = rig.files[file].ReadAt(into, from) //nolint:errcheck // its end is no error
				_ = checksum.Of(into)
			}
		})
	}
	all.Wait()
	return float64(most*step) / time.Since(begin).Seconds() / 1e9
}

// cut gives every GPU a ring of another shape, which is pinned then.
func (rig *tuning) cut(shape transfer.Shape) {
	rig.shape = shape
	var all sync.WaitGroup
	for _, device := range rig.machine.devices {
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
				rig.Fatal(err)
			}
		})
	}
	all.Wait()
}

// rates are of a few times that all files are poured, the slowest first.
func (rig *tuning) rates(readers, share int, of rangesOf) (found []float64) {
	for range 3 {
		var all sync.WaitGroup
		begin := time.Now()
		for number, device := range rig.machine.devices {
			pours := of(rig.files[number], 0, *tuneBytes, 33<<20, int64(min(share, 256<<10)))
			loads := make([]transfer.Load, len(pours))
			for i := range pours {
				loads[i] = transfer.Load{End: device.end, Offset: pours[i].Offset, Values: pours[i].Values}
			}
			all.Go(func() {
				if err := device.gpu.ring.Pour(context.Background(), loads, transfer.Hands{Readers: readers}, time.Minute, func(int64) {}); err != nil {
					rig.Error(err)
				}
			})
		}
		all.Wait()
		found = append(found, float64(*tuneBytes*int64(len(rig.files)))/time.Since(begin).Seconds()/1e9)
	}
	slices.Sort(found)
	return found
}

// unread are ranges that nothing is read for: what a ring takes by itself.
func unread(file *os.File, begin, end, size, step int64) []executor.Pour {
	pours := ranges(file, begin, end, size, step)
	for i := range pours {
		pours[i].Values.Read = func([]byte, int64) error { return nil }
	}
	return pours
}
