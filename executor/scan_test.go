package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestSpans: a byte that is poison by chance is none, four of them are, and so
// are the two bytes after the last value of a bf16 tensor.
func TestSpans(t *testing.T) {
	const no = 0xFF
	var got []string
	spans := spans{tell: func(from, to int64, poisoned bool) { got = append(got, fmt.Sprint(from, to, poisoned)) }}
	spans.take([]byte{no, no, no, no, no, no, no, no, no, no, no, no, 1, 2, 3, 4})
	spans.take([]byte{no, 1, no, no, no, no, 0, 0, no, no, no, no, no, no, no, no})
	spans.end()
	want := []string{"0 12 true", "12 18 false", "18 20 true", "20 24 false", "24 32 true"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestSpansOfRandomBytes: the stretches are those that halves of words say, one
// at a time.
func TestSpansOfRandomBytes(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 8*(1+random.IntN(40)))
		for i := 0; i < len(data); i += 2 {
			if random.IntN(3) > 0 {
				data[i], data[i+1] = 0xFF, 0xFF
			}
		}
		want := make([]bool, len(data)/2)
		for word := range len(data) / 4 {
			upper := data[4*word+3] == 0xFF
			want[2*word], want[2*word+1] = upper && data[4*word] == 0xFF, upper
		}
		got := make([]bool, len(want))
		spans := spans{tell: func(from, to int64, poisoned bool) {
			for half := from / 2; half < to/2; half++ {
				got[half] = poisoned
			}
		}}
		cut := 8 * random.IntN(len(data)/8)
		spans.take(data[:cut])
		spans.take(data[cut:])
		spans.end()
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
	}
}

func TestWhyBytesWereNotWritten(t *testing.T) {
	prog := &program.Program{
		Devices: []program.Device{{Arena: 2048}},
		Buffers: []program.Buffer{
			{Name: "workspace", Bytes: 256, Class: program.Workspace},
			{Name: "one", Offset: 256, Bytes: 512, Class: program.Saved},
			{Name: "over", Offset: 512, Bytes: 768, Class: program.Scratch}, // over the end of one
		},
	}
	plan := &arenaPlan{gapOf: make(map[[2]string]int), written: []bind.Area{
		{Offset: 256, DType: modelgraph.F32, Rows: 4, Columns: 6, Stride: 8}, // 24 of every 32 bytes, to 376
		{Offset: 768, DType: modelgraph.BF16, Rows: 1, Columns: 3, Stride: 3},
	}, reach: []int64{376, 774}}
	plan.cut(prog, 0)
	for _, span := range [][2]int64{{0, 256}, {280, 288}, {376, 512}, {340, 344}, {700, 768}, {774, 1024}, {1024, 2048}} {
		plan.untouched(span[0], span[1])
	}
	want := []Gap{
		{"workspace", forLibraries, 256, false},
		{"one", forAlignment, 8 + 136 + 68, false},
		{"one", neverWritten, 4, true},
		{"over", forAlignment, 250 + 256, false},
		{"", betweenAll, 768, false},
	}
	if !slices.Equal(plan.gaps, want) {
		t.Errorf("got %v\nwant %v", plan.gaps, want)
	}
	if got := plan.stray(1000, 1500); got != 220 {
		t.Errorf("%d bytes are in no buffer, want 220", got)
	}
}

func BenchmarkSpans(b *testing.B) {
	data := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	spans := spans{tell: func(int64, int64, bool) {}}
	for b.Loop() {
		spans.take(data)
	}
}

// TestLook: look reports an arena as one stretch of bytes, however it is cut for
// scanning.
func TestLook(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	arena := make([]byte, 3*looked+8*256)
	for at := 0; at < len(arena); { // stretches of some megabytes, over the cuts
		size := min(8*(1+random.IntN(looked/40)), len(arena)-at)
		if random.IntN(2) > 0 {
			for i := range arena[at : at+size] {
				arena[at+i] = Poison
			}
		}
		at += size
	}
	var want, got []span
	whole := spans{tell: func(from, to int64, poisoned bool) { want = append(want, span{from, to, poisoned}) }}
	whole.take(arena)
	whole.end()
	run := scanner{
		sessionState: &sessionState{
			job:     &Job{Program: &program.Program{Devices: []program.Device{{Arena: int64(len(arena))}}}},
			machine: arenaOnly{bytes: arena},
		},
		buffers: buffers(),
	}
	tell := func(from, to int64, poisoned bool) { got = append(got, span{from, to, poisoned}) }
	if err := run.look(t.Context(), 0, tell); err != nil || !slices.Equal(got, want) || len(want) < 5 {
		t.Fatalf("%v\ngot  %v\nwant %v", err, got, want)
	}
	run.machine, run.buffers = arenaOnly{bytes: arena, until: 2 * looked}, buffers()
	if err := run.look(t.Context(), 0, tell); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("a read that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run.buffers = buffers()
	if err := run.look(ctx, 0, tell); !errors.Is(err, context.Canceled) {
		t.Fatalf("canceled: %v", err)
	}
}

// TestScanBuffers: all arenas are read into the same buffers, as each buffer is growth of the process.
func TestScanBuffers(t *testing.T) {
	into := map[*byte]bool{}
	scanned(t, into, func(int) int64 { return looked })
	if most := cap(buffers()); len(into) > most {
		t.Errorf("%d buffers, at most %d are right", len(into), most)
	}
}

// TestScanOfLargerArenas: a buffer of an arena is too small for the next ones.
func TestScanOfLargerArenas(t *testing.T) {
	for i, device := range scanned(t, nil, func(number int) int64 { return int64(1+number) << 10 }) {
		if want := int64(1+i) << 10; device.Touched != want {
			t.Errorf("device %d: %d bytes are written, want %d", i, device.Touched, want)
		}
	}
}

// scanned scans twelve arenas without poison, of up to looked bytes.
func scanned(t *testing.T, into map[*byte]bool, bytes func(number int) int64) []DeviceResult {
	t.Helper()
	devices := make([]program.Device, 12)
	for i := range devices {
		devices[i].Arena = bytes(i)
	}
	all := &program.Program{Devices: devices}
	run := scanner{
		sessionState: &sessionState{
			job: &Job{Program: all}, bound: &bind.Bound{Program: all, Workload: &costmodel.Workload{}},
			machine: arenaOnly{bytes: make([]byte, looked), into: into},
		},
		result: &Result{},
	}
	if err := run.scan(t.Context()); err != nil || len(run.result.Devices) != len(devices) {
		t.Fatal(err)
	}
	return run.result.Devices
}

// TestMemoryErrorText: the size is that of all arenas, not of the device that the error names.
func TestMemoryErrorText(t *testing.T) {
	err := &MemoryError{Device: 1, Need: 3 << 30, Free: 2 << 30, Place: "this machine"}
	const want = "all arenas in this machine take 3.00 GiB together, and it has 2.00 GiB free: that of device 1 is the first without room"
	if err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// arenaOnly is a machine that is read from, up to where it fails.
type arenaOnly struct {
	Machine
	bytes []byte
	until int64
	into  map[*byte]bool // where it was read to
}

func (arena arenaOnly) Read(_ int, offset int64, data []byte) error {
	if arena.until > 0 && offset >= arena.until {
		return io.ErrUnexpectedEOF
	}
	if arena.into != nil {
		arena.into[&data[0]] = true
	}
	copy(data, arena.bytes[offset:])
	return nil
}
