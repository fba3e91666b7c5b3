package simulate_test

import (
	"os"
	"testing"

	"github.com/devmap-dev/devmap/executor/program"
)

// TestHalves: without times, a forward and each half of a backward take one tick.
func TestHalves(t *testing.T) {
	text, err := os.ReadFile("../program/testdata/halves.txt")
	if err != nil {
		t.Fatal(err)
	}
	read, err := program.Parse("halves", text)
	if err != nil {
		t.Fatal(err)
	}
	if took := run(t, read).Devices[0].Computing; took != 6 {
		t.Errorf("two micro-batches compute for %d ticks, want 6", took)
	}
}
