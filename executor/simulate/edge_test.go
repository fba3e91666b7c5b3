package simulate_test

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
)

func parsed(t *testing.T, text string) *program.Program {
	t.Helper()
	prog, err := program.Parse("by hand", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// TestWrittenAgain: a buffer that is read and written again by one instruction is live
// through it, once.
func TestWrittenAgain(t *testing.T) {
	result := run(t, parsed(t, `device 0 arena 256 budget 256
buffer 0 x 0 +256 stream
routine a a
0.0 compute forward a mb0 >x
0.1 compute forward a mb1 x >x
0.2 compute forward a mb2 x
0.3 compute forward a mb3`))
	if want := []simulate.Moment{{Time: 0, Bytes: 256}, {Time: 3, Bytes: 0}}; !slices.Equal(result.Devices[0].Memory, want) {
		t.Errorf("%v, want %v", result.Devices[0].Memory, want)
	}
}

// TestUnmatched: a device that runs a micro-batch backward alone, as the second
// half of a split one, has none in flight, and counts the others.
func TestUnmatched(t *testing.T) {
	result := run(t, parsed(t, `device 0 arena 0 budget 0
routine a a
0.0 compute backward a mb0
0.1 compute forward a mb1
0.2 compute forward a mb2000000000
0.3 compute forward a mb2
0.4 compute backward a mb1
0.5 compute backward a mb2`))
	if got := result.Devices[0].InFlight; got != 2 {
		t.Errorf("%d in flight, want 2", got)
	}
}

// TestPathFirst: of chains that end together it is that of the first instruction.
func TestPathFirst(t *testing.T) {
	result := run(t, parsed(t, `device 0 arena 0 budget 0
device 1 arena 0 budget 0
routine a a
0.0 copies fence
0.1 compute forward a mb0
0.2 compute forward a mb1
1.0 compute backward a mb0
`))
	if want := []int32{1, 2}; !slices.Equal(result.Path, want) {
		t.Errorf("%v, want %v", result.Path, want)
	}
	if result.Devices[0].Computing != 2 || result.Bubble(0) != 0 {
		t.Errorf("computes %d of %d", result.Devices[0].Computing, result.Makespan)
	}
}

// TestEmpty: nothing takes no time.
func TestEmpty(t *testing.T) {
	result := run(t, parsed(t, "device 0 arena 0 budget 0\n"))
	if result.Makespan != 0 || len(result.Path) != 0 || result.Bubble(0) != 0 || result.Devices[0].PeakAt != program.None {
		t.Errorf("%+v", result)
	}
}

// TestRendezvous: without slots both ends start when the later one is there; the
// sender continues once the message is sent, the receiver once it is there.
func TestRendezvous(t *testing.T) {
	result := run(t, parsed(t, `time picoseconds
device 0 arena 0 budget 0
device 1 arena 0 budget 0
channel act 0>1 slots 0 bytes 0
link act 30 5
routine a a
ticks 0 forward a 100
ticks 1 forward a 200
0.0 compute forward a mb0
0.1 compute send act#0
0.2 compute forward a mb1
0.3 compute send act#1
1.0 compute recv act#0
1.1 compute forward a mb0
1.2 compute recv act#1
`))
	want := []int64{0, 100, 130, 335, 100, 135, 335}
	if !slices.Equal(result.Start, want) || result.Makespan != 370 {
		t.Errorf("starts %v, %d in all; want %v, 370", result.Start, result.Makespan, want)
	}
}
