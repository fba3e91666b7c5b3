package simulate_test

import (
	"os"
	"testing"

	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestHostMemory: what waits in host memory is not in the device's memory.
func TestHostMemory(t *testing.T) {
	text := fixtures.Must(os.ReadFile("../program/testdata/moved.txt"))(t)
	read := fixtures.Must(program.Parse("moved", text))(t)
	device := run(t, read).Devices[0]
	for _, life := range device.Lives {
		if buffer := &read.Buffers[life.Buffer]; buffer.Class == program.Host {
			t.Errorf("%s lives from %d to %d", buffer.Name, life.From, life.To)
		}
	}
	if device.Peak.Bytes != 6*256 { // weights, losses, and both micro-batches' input and saved tensors
		t.Errorf("the peak is %d bytes", device.Peak.Bytes)
	}
}
