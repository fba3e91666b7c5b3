package cpu_test

import (
	"flag"
	"testing"

	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cpu"
)

// How many ways to cut each model there are, and what draws them.
var (
	cuts = flag.Int("cuts", 1, "ways to cut each model")
	seed = flag.Uint64("seed", 12, "of the cuts")
)

// TestBits: however a model is cut, it makes the bits that one device does.
func TestBits(t *testing.T) {
	t.Parallel()
	if err := backendtest.Bits(cpu.New(), t.TempDir(), *cuts, *seed); err != nil {
		t.Error(err)
	}
}
