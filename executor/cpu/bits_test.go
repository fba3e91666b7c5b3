package cpu_test

import (
	"testing"

	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cpu"
)

// TestBits: however a model is cut, it makes the bits that one device does.
func TestBits(t *testing.T) {
	t.Parallel()
	if err := backendtest.Bits(cpu.New(), t.TempDir(), 2, 12); err != nil {
		t.Error(err)
	}
}
