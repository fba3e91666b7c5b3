//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/weights"
)

// TestGPUSleep: three turns of two steps, with nothing of the arenas on the GPUs between
// them, make the bits of one turn of six: losses, tokens, what the optimizer left.
func TestGPUSleep(t *testing.T) {
	onGPU(t)
	for _, way := range []string{"train", "mixed", "generate bf16"} {
		for _, devices := range placements(t, 3) {
			t.Run(fmt.Sprint(way, devices), func(t *testing.T) { turnsOnGPU(t, way, devices) })
		}
	}
}

func turnsOnGPU(t *testing.T, way string, devices []int) {
	t.Helper()
	gauge, folder := newGauge(t), t.TempDir()
	wanted := backendtest.Workloads()[way]
	wanted.Strategy, wanted.Schedule, wanted.Batch, wanted.MicroBatches = costmodel.Pipeline, costmodel.OneFOneB, 4, 2
	job := compiled(t, "qwen2", wanted, len(devices), 1)
	backend, err := New(executor.GPUOptions{Devices: devices})
	if err != nil {
		t.Fatal(err)
	}
	made := func(turns, steps int64, name string) (losses []float64, tokens [][]int32) {
		session := &executor.Session{Backend: backend, Job: job}
		settings := executor.Settings{Steps: steps, Seed: 5, Weights: weights.Random(job.Graph, 11)}
		for turn := range turns {
			settings.Keep = turn < turns-1
			if wanted.Mode == costmodel.Train {
				settings.Optimizer = executor.Optimizer{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01, Clip: 0.5}
				if !settings.Keep {
					settings.Save.State = filepath.Join(folder, name)
				}
			}
			result, err := session.Turn(context.Background(), &settings)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: turn %d: %+v", name, turn+1, result.Turn)
			settings.Weights = nil
			for _, step := range result.Steps {
				losses = append(losses, step.Loss)
			}
			tokens = append(tokens, result.Tokens...)
		}
		return losses, tokens
	}
	losses, tokens := made(1, 6, "whole")
	start := gauge.tell(t, "behind one turn") // of a process's first one cuBLASLt keeps a context
	again, others := made(3, 2, "turns")
	if fmt.Sprint(losses, tokens) != fmt.Sprint(again, others) {
		t.Errorf("losses %v and tokens %v, in one turn %v and %v", again, others, losses, tokens)
	}
	if wanted.Mode == costmodel.Train {
		var states [2][]byte
		for i, name := range []string{"whole", "turns"} {
			if states[i], err = os.ReadFile(filepath.Join(folder, name, "state.safetensors")); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(states[0], states[1]) {
			t.Error("the optimizer left other bytes")
		}
	}
	if leaked := driver.Unreleased(); leaked != "" {
		t.Errorf("the process still holds %s", leaked)
	}
	gauge.settled(t, start)
}

// TestGPUWake compares how long an arena of 16 GB takes to sleep and to wake with a plain
// copy from the same pinned memory. A wake without enough free memory is rolled back, and
// the next one finds all of its bytes.
func TestGPUWake(t *testing.T) {
	onGPU(t)
	size := int64(16e9) / 512 * 512
	if host := hostmemory.Tightest(hostmemory.Limits(), hostmemory.FreeMemory{Free: 1 << 50}); host.Free < 2*size {
		size /= 2
		t.Logf("%s has %d bytes free: a model of %d", host.Place, host.Free, size)
	}
	const rest = 2 << 30 // that no copy fills
	text := fmt.Sprintf("device 0 arena %[1]d budget %[1]d\nbuffer 0 weights 0 +%[2]d weight\n0.0 compute load >weights\n0.1 compute unload weights\n", size+rest, size)
	begin := time.Now()
	machine := opened(t, made(t, executor.GPUOptions{Devices: []int{0}}), parsed(t, text))
	t.Logf("opened in %v", time.Since(begin))
	if err := machine.Fill(0, 0, size, 0x5A); err != nil {
		t.Fatal(err)
	}
	for turn := range 6 {
		begin := time.Now()
		down, err := machine.Sleep(context.Background(), unwatched)
		if err != nil {
			t.Fatal(err)
		}
		slept, when := time.Since(begin), "at once"
		if turn%2 == 1 { // when the driver has finished its work on released memory
			when = "a second later"
			time.Sleep(time.Second)
		}
		begin = time.Now()
		mapped, up, err := machine.Wake(context.Background(), unwatched)
		if err != nil || up != size {
			t.Fatal(up, err)
		}
		woken := time.Since(begin)
		t.Logf("turn %d: asleep in %v with %d bytes copied; awake in %v, mapped in %v, copied in %v", turn, slept, down, woken, mapped, woken-mapped)
		alone := copyAlone(t, machine)
		t.Logf("the same copy alone: %v, %.2f GB/s: the wake, %s, takes %.3f of it", alone, float64(size)/alone.Seconds()/1e9, when, woken.Seconds()/alone.Seconds())
	}
	filled(t, machine, size)
	eighths(t, machine)
	if _, err := machine.Sleep(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	before, device := driver.Unreleased(), machine.devices[0]
	var filler *driver.Arena
	err := device.do(func() error {
		free, _, err := driver.FreeMemory()
		if err != nil {
			return err
		}
		filler, err = device.gpu.Map((free - size/2) / device.gpu.granule * device.gpu.granule)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var memoryErr *executor.MemoryError
	if _, _, err := machine.Wake(context.Background(), unwatched); !errors.As(err, &memoryErr) || !strings.Contains(err.Error(), "free") {
		t.Errorf("%v", err)
	} else {
		t.Logf("rolled back: %v", err)
	}
	if err := device.do(filler.Release); err != nil || driver.Unreleased() != before {
		t.Errorf("%v; it holds %s, and asleep %s", err, driver.Unreleased(), before)
	}
	if _, _, err := machine.Wake(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	filled(t, machine, size)
}

// eighths logs the speed of each eighth of the copy to memory that was just mapped, and to the same
// memory again. If a wake is slower than a copy, it shows whether at its beginning or throughout.
func eighths(t *testing.T, machine *machine) {
	t.Helper()
	if _, err := machine.Sleep(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
	device := machine.devices[0]
	if err := machine.remap(); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"just mapped", "again"} {
		var rates []string
		err := device.do(func() error {
			data := device.saved.pinned.Data
			share := len(data) / 8
			for at := 0; at+share <= len(data); at += share {
				begin := time.Now()
				if err := errors.Join(device.host.Up(device.at(int64(at)), data[at:at+share]), device.host.Synchronize()); err != nil {
					return err
				}
				rates = append(rates, fmt.Sprintf("%.1f", float64(share)/time.Since(begin).Seconds()/1e9))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("a copy to memory that is %s, by eighths: %s GB/s", when, strings.Join(rates, " "))
	}
	if err := device.do(device.arena.Unmap); err != nil {
		t.Fatal(err)
	}
	if _, _, err := machine.Wake(context.Background(), unwatched); err != nil {
		t.Fatal(err)
	}
}

// copyAlone returns the time of the kept data's copy to the arena without mapping or poison, the
// best of three.
func copyAlone(t *testing.T, machine *machine) time.Duration {
	t.Helper()
	best := time.Hour
	device := machine.devices[0]
	for range 3 {
		begin := time.Now()
		err := device.do(func() error {
			err := device.saved.each(func(stretch *bind.Lasting, data []byte) error {
				return device.host.Up(device.at(stretch.Offset), data)
			})
			return errors.Join(err, device.host.Synchronize())
		})
		if err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(begin))
	}
	return best
}

// filled looks at some bytes of the arena: those that are kept, and those behind.
func filled(t *testing.T, machine *machine, size int64) {
	t.Helper()
	data := make([]byte, 64<<20)
	for _, at := range []int64{0, size / 2, size - int64(len(data)), size, machine.devices[0].plan.Arena - int64(len(data))} {
		want := byte(0x5A)
		if at >= size {
			want = executor.Poison
		}
		if err := machine.Read(0, at, data); err != nil {
			t.Fatal(err)
		}
		for i := range data {
			if data[i] != want {
				t.Fatalf("byte %d is %#x, want %#x", at+int64(i), data[i], want)
			}
		}
	}
}
