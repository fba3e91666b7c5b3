//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/weights"
)

// randomFile writes a file of random bytes, which is in the page cache then.
func randomFile(tb testing.TB, path string, size int64) *os.File {
	tb.Helper()
	file, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() })
	const stretch = 64 << 20
	var writers sync.WaitGroup
	for from := int64(0); from < size; from += stretch {
		writers.Go(func() {
			data := make([]byte, min(stretch, size-from))
			var seed [32]byte
			copy(seed[:], fmt.Sprint(from))
			_, _ = rand.NewChaCha8(seed).Read(data)
			if _, err := file.WriteAt(data, from); err != nil {
				tb.Error(err)
			}
		})
	}
	writers.Wait()
	return file
}

// ranges are consecutive tensors of a file.
func ranges(file *os.File, begin, end, size, step int64) (loads []executor.Upload) {
	for at := begin; at < end; at += size {
		loads = append(loads, executor.Upload{Offset: at, Values: weights.Range{
			Bytes: min(size, end-at), Step: step, Place: fmt.Sprintf("%s at %d", file.Name(), at),
			Read: func(into []byte, from int64) error {
				_, err := file.ReadAt(into, at+from)
				return err
			},
		}})
	}
	return loads
}

// upRate is what large copies from pinned memory reach, in GB/s.
func upRate(tb testing.TB, machine *machine) (rate float64) {
	tb.Helper()
	device := machine.devices[0]
	if err := device.do(func() error {
		const size = 256 << 20
		pinned, err := driver.PinLarge(size)
		if err != nil {
			return err
		}
		for range 3 {
			begin := time.Now()
			for at := int64(0); at+size <= device.plan.Arena; at += size {
				if err := device.host.Up(device.at(at), pinned.Data); err != nil {
					return err
				}
			}
			if err := device.host.Synchronize(); err != nil {
				return err
			}
			rate = max(rate, float64(device.plan.Arena/size*size)/time.Since(begin).Seconds()/1e9)
		}
		return pinned.Free()
	}); err != nil {
		tb.Fatal(err)
	}
	return rate
}

// TestGPUUpload: a file goes from the page cache to the GPU, byte for byte, at the
// rate of its link.
func TestGPUUpload(t *testing.T) {
	onGPU(t)
	const size = 4 << 30
	for _, folder := range []string{"/dev/shm", "."} {
		t.Run(folder, func(t *testing.T) {
			file := randomFile(t, filepath.Join(folder, fmt.Sprint("devmap-pour-", os.Getpid())), size)
			t.Cleanup(func() { _ = os.Remove(file.Name()) })
			backend := made(t, executor.GPUOptions{})
			machine := opened(t, backend, parsed(t, fmt.Sprintf("device 0 arena %d budget %d\n", size, size)))
			link := upRate(t, machine)
			for _, end := range []int64{5 << 29, size} {
				for range 4 {
					begin := time.Now()
					if err := machine.Upload(context.Background(), ranges(file, 0, end, 33<<20, 256<<10), func(int64) {}); err != nil {
						t.Fatal(err)
					}
					rate := float64(end) / time.Since(begin).Seconds() / 1e9
					t.Logf("%s: %.2f GB at %.2f GB/s, %.3f of the link's %.2f GB/s", folder, float64(end)/1e9, rate, rate/link, link)
				}
			}
			for range 8 {
				from := rand.Int64N(size - 1<<20)
				read, found := make([]byte, 1<<20), make([]byte, 1<<20)
				if _, err := file.ReadAt(read, from); err != nil {
					t.Fatal(err)
				}
				if err := machine.Read(0, from, found); err != nil || !bytes.Equal(read, found) {
					t.Errorf("other bytes at %d, %v", from, err)
				}
			}
			if err := os.Remove(file.Name()); err != nil {
				t.Error(err)
			}
		})
	}
}
