package schedule

import (
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
	if err := of.checkHost([]hostmemory.FreeMemory{{Place: "this machine's memory", Free: 3 << 20}}); err != nil {
		t.Error(err)
	}
	err := of.checkHost([]hostmemory.FreeMemory{{Place: "this machine's memory", Free: 1 << 20}})
	if err == nil || !strings.HasPrefix(err.Error(), "offloaded activations take 3.0 MiB of the host's memory, and this machine's memory has 1.0 MiB free: 2.0 MiB too little") {
		t.Error(err)
	}
}
