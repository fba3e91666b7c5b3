package schedule

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/program"
)

// A host with too little memory for what leaves the GPUs is refused, with the bytes that it lacks.
func TestHostTooSmall(t *testing.T) {
	of := New(&program.Program{
		Devices: []program.Device{{ID: 0}, {ID: 1}},
		Buffers: []program.Buffer{{Device: 0, Offset: 1 << 20, Bytes: 1 << 20, Class: program.Host}, {Device: 1, Bytes: 1 << 20, Class: program.Host}, {Device: 1, Bytes: 1 << 30, Class: program.Saved}},
	}, Options{})
	free := func(bytes int64) func() []hostmemory.FreeMemory {
		return func() []hostmemory.FreeMemory {
			return []hostmemory.FreeMemory{{Place: "this machine's memory", Free: bytes}}
		}
	}
	if err := of.checkHost(free(3 << 20)); err != nil {
		t.Error(err)
	}
	err := of.checkHost(free(1 << 20))
	if err == nil || !strings.HasPrefix(err.Error(), "offloaded activations take 3.0 MiB of the host's memory, and this machine's memory has 1.0 MiB free: 2.0 MiB too little") {
		t.Error(err)
	}
	of.Program.Buffers = of.Program.Buffers[2:]
	if err := of.checkHost(free(-1)); err != nil {
		t.Errorf("nothing leaves the GPUs: %v", err)
	}
}

// The error of pinned memory that the driver does not give names the bytes and the way out.
func TestNoPinnedMemory(t *testing.T) {
	of := New(&program.Program{
		Devices: []program.Device{{ID: 3}}, Buffers: []program.Buffer{{Bytes: 6 << 30, Class: program.Host}},
	}, Options{})
	of.Devices = []*Device{NewDevice(&of.Program.Devices[0], refusing{})}
	defer of.Devices[0].End()
	err := of.pin(0)
	if err == nil || !errors.Is(err, errFake) || !strings.HasPrefix(err.Error(), "device 3 on GPU 0: the host gives no 6.00 GiB of pinned memory for offloaded activations (offload fewer blocks, or recompute them): ") {
		t.Error(err)
	}
	if err := of.Devices[0].Close(); err != nil {
		t.Error(err)
	}
}

// refusing is a driver without pinned memory.
type refusing struct{ Driver }

func (refusing) Place() string { return "GPU 0" }

func (refusing) Pin(int64) (Pinned, error) { return nil, errFake }
