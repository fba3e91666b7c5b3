package cpu

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

const twoDevices = "device 0 arena 1280 budget 4096\ndevice 1 arena 0 budget 0\ndevice 2 arena 512 budget 512\n"

func TestArenas(t *testing.T) {
	machine := opened(t, New(), parsed(t, twoDevices))
	for device, size := range []int{1280, 0, 512} {
		got := make([]byte, size)
		if err := machine.Read(device, 0, got); err != nil || !bytes.Equal(got, bytes.Repeat([]byte{executor.Poison}, size)) {
			t.Errorf("device %d begins with error %v, %x", device, err, got)
		}
	}
	if err := errors.Join(machine.Write(0, 100, []byte{1, 2, 3}), machine.Fill(0, 101, 1, 9), machine.Fill(2, 0, 512, 0)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if err := machine.Read(0, 99, got); err != nil || !bytes.Equal(got, []byte{executor.Poison, 1, 9, 3, executor.Poison}) {
		t.Errorf("error %v, read %x", err, got)
	}
	for _, wrong := range []struct {
		device       int
		offset, size int64
	}{{0, 1279, 2}, {0, -1, 1}, {0, 1281, 0}, {1, 0, 1}, {3, 0, 0}, {-1, 0, 0}, {2, 1 << 62, 1 << 10}, {0, 0, -1}} {
		if err := machine.Fill(wrong.device, wrong.offset, wrong.size, 0); err == nil {
			t.Errorf("fills %+v", wrong)
		}
	}
	if err := errors.Join(machine.Close(), machine.Close()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if err := machine.Fill(0, 0, 1, 0); err == nil {
		t.Error("fills a closed machine")
	}
	if _, err := machine.Step(context.Background(), &executor.Step{}); err == nil {
		t.Error("steps a closed machine")
	}
}

func TestFill(t *testing.T) {
	for _, size := range []int{0, 1, 2, 255, 1<<16 + 3, 9<<16 - 1} {
		for _, value := range []byte{0, 7} {
			whole := bytes.Repeat([]byte{1}, size+1)
			fill(whole[:size], value)
			if want := append(bytes.Repeat([]byte{value}, size), 1); !bytes.Equal(whole, want) {
				t.Errorf("%d bytes of %d are not filled, or more are", size, value)
			}
		}
	}
}

// TestOpenUnsupported: if arenas cannot be mapped at all, the error is not about room.
func TestOpenUnsupported(t *testing.T) {
	heap := newHeap()
	heap.reserve = func(int64) ([]byte, error) { return nil, errors.ErrUnsupported }
	_, err := heap.Open(context.Background(), &bind.Bound{Program: parsed(t, twoDevices)})
	var lack *executor.MemoryError
	if !errors.Is(err, errors.ErrUnsupported) || errors.As(err, &lack) {
		t.Errorf("error %v", err)
	}
}

// A machine that is not wanted any more while its arenas are poisoned holds none.
func TestOpenCancelled(t *testing.T) {
	heap := newHeap()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	bound := &bind.Bound{Program: parsed(t, twoDevices)}
	made, err := heap.Open(ctx, bound)
	if made != nil || !errors.Is(err, context.Canceled) || heap.reserved.Load() != 0 {
		t.Errorf("error %v, %d arenas are held", err, heap.reserved.Load())
	}
}
