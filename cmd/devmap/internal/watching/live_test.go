package watching

import (
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor/watch"
)

const gib = int64(1 << 30)

func state(number int, others, used, peak int64) watch.GPUState {
	return watch.GPUState{
		Place: watch.Place{Number: number}, GPU: watch.GPU{Name: "H200", Total: 100 * gib},
		BeforeBytes: others, CommandBytes: used, PeakBytes: peak,
	}
}

// TestLines: a bar is as long as the GPU's memory, with a mark at the end of its prediction. No
// line is wider than the terminal.
func TestLines(t *testing.T) {
	t.Parallel()
	states := []watch.GPUState{state(0, 10*gib, 20*gib, 30*gib), state(11, 0, 0, 0)}
	states[0].Growth = watch.Growth{Rises: 2, LastRise: 3 << 20}
	states[0].Processes = 2
	live := &Live{title: "plan.json", predicted: [][2]int64{{0, 50 * gib}, {0, 99 * gib}}}
	lines := live.lines(states, 90*time.Second, 180)
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "── 1m30s · plan.json") {
		t.Fatalf("%q", lines)
	}
	bar := []rune(lines[1])[9 : 9+60]
	for i, char := range bar {
		want := '·'
		switch {
		case i < 6:
			want = '░'
		case i < 18:
			want = '█'
		case i < 24:
			want = '▒'
		case i == 36:
			want = '┃'
		}
		if char != want {
			t.Errorf("column %d: %c, not %c in %s", i, char, want, string(bar))
		}
	}
	if !strings.HasSuffix(lines[1], "  20.00 GiB, peak 30.00 GiB of 50.00 GiB, grew 2× (last 3.0 MiB), 2 processes, others 10.00 GiB") {
		t.Errorf("%q", lines[1])
	}
	if !strings.HasPrefix(lines[2], "GPU 11   ·") || !strings.Contains(lines[2], "┃") {
		t.Errorf("%q", lines[2])
	}
	for _, columns := range []int{0, 5, 20, 60, 120} {
		for _, line := range live.lines(states, time.Second, columns) {
			if len([]rune(line)) > max(columns, 19) { // a number and the narrowest bar
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
	live.colour = true
	if line := live.lines(states, 0, 180)[1]; !strings.Contains(line, "\x1b[32m░") || !strings.Contains(line, "┃\x1b[0m·") {
		t.Errorf("%q", line)
	}
	live.predicted[0][1] = 29 * gib
	if line := live.lines(states, 0, 180)[1]; !strings.Contains(line, "\x1b[31m") || !strings.Contains(line, "builds up: 1.00 GiB beyond") {
		t.Errorf("%q", line)
	}
	states[1].PeakBytes = 100 * gib
	if line := live.lines(states, 0, 180)[1]; strings.Contains(line, "builds up") {
		t.Errorf("%q", line)
	}
}

// TestPlain: without a terminal, a line is printed at the beginning. Later lines follow when a peak
// has risen by a hundredth of its GPU, or after a minute.
func TestPlain(t *testing.T) {
	t.Parallel()
	states := []watch.GPUState{state(0, 0, 0, 0)}
	var text strings.Builder
	live := NewLive(&text, "plan.json", [][2]int64{{0, 50 * gib}}, func() []watch.GPUState { return states })
	live.Begin()
	live.Close()
	live.Close()
	if text.String() != "devmap watch: watching GPU 0 (H200); plan.json\n" {
		t.Errorf("%q", text.String())
	}
	for _, step := range []struct {
		since time.Duration
		peak  int64
		want  bool
	}{{10 * time.Second, 0, false}, {20 * time.Second, gib, false}, {30 * time.Second, 2 * gib, true}, {40 * time.Second, 2*gib + 5, false}, {61 * time.Second, 2*gib + 5, true}, {70 * time.Second, 2*gib + 5, false}} {
		states[0].PeakBytes = step.peak
		if got := live.shouldReport(states, step.since); got != step.want {
			t.Errorf("after %v with %d: %v", step.since, step.peak, got)
		}
	}
	if said := live.plain(states, 70*time.Second); said != "1m10s: GPU 0 0 B, peak 2.00 GiB of 50.00 GiB" {
		t.Errorf("%q", said)
	}
}

// TestScreen: the reserved lines are released.
func TestScreen(t *testing.T) {
	t.Parallel()
	if newScreen(new(strings.Builder)) != nil {
		t.Error("a buffer is a terminal")
	}
	if got, want := reserve(30, 3), "\n\n\n\x1b[3A\x1b7\x1b[1;27r\x1b8"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	shown := &screen{rows: 30, height: 3}
	if got, want := shown.release(), "\x1b7\x1b[r\x1b[28;1H\x1b[J\x1b8"; got != want || shown.release() != "" {
		t.Errorf("%q, want %q, once", got, want)
	}
}
