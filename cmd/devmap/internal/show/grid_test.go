package show

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/executor/program"
)

func TestShortened(t *testing.T) {
	for _, test := range []struct {
		count, shown int64
		want         []int64
	}{
		{0, 4, nil},
		{4, 4, []int64{0, 1, 2, 3}},
		{5, 4, []int64{0, 1, -1, 3, 4}},
		{100, 4, []int64{0, 1, -1, 98, 99}},
	} {
		if got := shortened(test.count, test.shown); !slices.Equal(got, test.want) {
			t.Errorf("%d of %d: %v, want %v", test.shown, test.count, got, test.want)
		}
	}
}

// TestGrid: the grid of many devices and steps is cut to a page that shows the first and the last.
func TestGrid(t *testing.T) {
	var text strings.Builder
	const devices, batches = 30, 60
	fmt.Fprintln(&text, "routine a a\nroutine b b")
	for device := range devices {
		fmt.Fprintf(&text, "device %d arena 0 budget 0\n", device)
		for batch := range batches { // two units per pass, and the backward after each forward
			fmt.Fprintf(&text, "%d.%d compute forward a mb%d\n", device, 4*batch, batch)
			fmt.Fprintf(&text, "%d.%d compute forward b mb%d\n", device, 4*batch+1, batch)
			fmt.Fprintf(&text, "%d.%d compute backward b mb%d\n", device, 4*batch+2, batch)
			fmt.Fprintf(&text, "%d.%d compute backward a mb%d\n", device, 4*batch+3, batch)
		}
	}
	prog, err := program.Parse("drawn", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	grid := (&Simulation{Program: prog}).schedule()
	lines := strings.Split(strings.TrimSpace(grid), "\n")
	if want := 1 + 2 + gridRows + 1; len(lines) != want {
		t.Errorf("%d lines, want %d", len(lines), want)
	}
	for _, line := range lines {
		if len([]rune(line)) > gridWidth {
			t.Errorf("wider than %d: %s", gridWidth, line)
		}
	}
	for _, part := range []string{"GPU 0 ", "GPU 29", " 0F0 ", "29B59", "  119  ", "…"} {
		if !strings.Contains(grid, part) {
			t.Errorf("without %q:\n%s", part, grid)
		}
	}
}
