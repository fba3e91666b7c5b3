package simulate_test

import (
	"os"
	"testing"

	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
)

// TestHalves: without times, a forward and each half of a backward take one tick.
func TestHalves(t *testing.T) {
	text := fixtures.Must(os.ReadFile("../program/testdata/halves.txt"))(t)
	read := fixtures.Must(program.Parse("halves", text))(t)
	if took := run(t, read).Devices[0].Computing; took != 6 {
		t.Errorf("two micro-batches compute for %d ticks, want 6", took)
	}
}
