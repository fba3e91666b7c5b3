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
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
)

var (
	tuneBytes   = flag.Int64("tune-bytes", 3<<30, "of each GPU's file, in TestTunePour")
	tuneSeconds = flag.Float64("tune-seconds", 30, "after which TestTunePour begins with no other shape")
	tuneFolder  = flag.String("tune-folder", ".", "where its files lie")
)

// TestTunePour is how a ring's shape and the number of its readers are chosen: what all
// GPUs that are shown take at once, each out of a file of its own in the page cache,
// beside copies from pinned memory to all of them, beside reading alone, and beside a
// ring that is not read into. Every line says GB/s of all together.
func TestTunePour(t *testing.T) {
	onGPU(t)
	rig := tuned(t, len(described(t)))
	nodes, _ := filepath.Glob("/sys/devices/system/node/node[0-9]*") //nolint:errcheck // the pattern is sound
	t.Logf("%d GPUs, %d processors, %d memory nodes", len(rig.files), runtime.GOMAXPROCS(0), len(nodes))
	t.Logf("copies of pinned memory, all at once: %.1f", rig.links)
	for _, readers := range []int{1, 4, 8, 16, 32, 60} {
		if readers < 2*runtime.GOMAXPROCS(0) {
			t.Logf("reading alone, %d readers: %.1f, summed up too: %.1f", readers, rig.reading(readers, false), rig.reading(readers, true))
		}
	}
	begun := time.Now()
	for _, shape := range shapes(len(rig.files)) {
		if time.Since(begun).Seconds() > *tuneSeconds {
			t.Log("the rest is left out: its time is over")
			return
		}
		rig.cut(shape)
		readers := []int{readers(len(rig.files))}
		if shape.Share == 1<<20 {
			readers = append(readers, max(1, readers[0]*2/3))
		}
		for _, count := range readers {
			found := rig.rates(count, shape.Share, ranges)
			t.Logf("%d parts of %4d KiB, shares of %4d KiB, %2d readers a GPU: %.1f to %.1f, %.3f of the links", shape.Parts, shape.Size>>10, shape.Share>>10, count, found[0], found[len(found)-1], found[len(found)-1]/rig.links)
		}
		if shape == transfer.ShapeFor(len(rig.files)) {
			found := rig.rates(readers[0], shape.Share, unread)
			t.Logf("the same, nothing read, only summed up: %.1f to %.1f", found[0], found[len(found)-1])
		}
	}
}

// shapes are those that are tried, the one that is taken first.
func shapes(gpus int) []transfer.Shape {
	all := []transfer.Shape{transfer.ShapeFor(gpus)}
	for _, one := range [][2]int{{8, 8}, {8, 4}, {16, 4}, {4, 8}, {16, 2}, {8, 2}, {4, 4}, {6, 8}, {8, 16}, {4, 16}, {4, 32}, {32, 1}} {
		for _, share := range []int{1 << 20, 512 << 10, 256 << 10, 2 << 20} {
			if shape := (transfer.Shape{Parts: one[0], Size: one[1] << 20, Share: share}); shape.Size >= share && !slices.Contains(all, shape) {
				all = append(all, shape)
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
}

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
func (rig *tuning) reading(readers int, summed bool) float64 {
	const step = 512 << 10
	var all sync.WaitGroup
	begin := time.Now()
	whole := int64(0)
	for number := range readers {
		file, share := rig.files[number%len(rig.files)], min(*tuneBytes, 1<<30)
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

// cut gives every GPU a ring of another shape, which is pinned then.
func (rig *tuning) cut(shape transfer.Shape) {
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
func (rig *tuning) rates(readers, share int, of func(file *os.File, begin, end, size, step int64) []executor.Pour) (found []float64) {
	for range 3 {
		var all sync.WaitGroup
		begin := time.Now()
		for number, device := range rig.machine.devices {
			pours := of(rig.files[number], 0, *tuneBytes, 33<<20, int64(min(share, 512<<10)))
			loads := make([]transfer.Load, len(pours))
			for i := range pours {
				loads[i] = transfer.Load{End: device.end, Offset: pours[i].Offset, Values: pours[i].Values}
			}
			all.Go(func() {
				if err := device.gpu.ring.Pour(context.Background(), loads, readers, time.Minute, func(int64) {}); err != nil {
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
