package allocator

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
)

// The actions of a trace (torch.cuda.memory._snapshot, device_traces).
const (
	allocated = iota
	_         // free_requested: on its way, if a second stream reads it
	freed
	segmentAllocated
	segmentFreed
)

// history is the requests to PyTorch's allocator on an H200, and its results: events of action,
// bytes, stream and address.
type history struct{ Events [][4]int64 }

// TestReplay replays the requests of processes on an H200 (fixtures/measured/how/measure_zero.py, option
// trace; TRACES names a folder of more): every tensor has its address, every segment its lifetime.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json.gz")
	if dir := os.Getenv("TRACES"); dir != "" {
		files, err = filepath.Glob(dir + "/*.json.gz")
	}
	if err != nil || len(files) == 0 {
		t.Fatal("no histories", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { replay(t, file) })
	}
}

func replay(t *testing.T, file string) {
	t.Helper()
	f := fixtures.Must(os.Open(file))(t)
	defer f.Close()
	unzipped := fixtures.Must(gzip.NewReader(f))(t)
	var recorded history
	if err := json.NewDecoder(unzipped).Decode(&recorded); err != nil {
		t.Fatal(err)
	}
	cache := NewCache()
	var reserved int64
	var next []int64 // addresses of segments that the driver gave
	cache.at = func(size int64) int64 {
		if len(next) == 0 {
			t.Fatalf("a segment of %d bytes, which the process did not ask for", size)
		}
		address := next[0]
		next = next[1:]
		return address
	}
	used := make(map[int64]*Block)
	for i, event := range recorded.Events {
		action, bytes, stream, address := event[0], event[1], int(event[2]), event[3]
		switch action {
		case allocated:
			block := cache.Alloc(stream, bytes)
			if block.address != address || len(next) > 0 {
				t.Fatalf("event %d: %d bytes lie at %d, they lay at %d; %d segments were not asked for", i, bytes, block.address, address, len(next))
			}
			used[address] = block
			if cache.Reserved != reserved {
				t.Fatalf("event %d: %d bytes reserved, not %d", i, cache.Reserved, reserved)
			}
		case freed:
			if used[address] != nil {
				cache.Free(used[address])
				delete(used, address)
			}
		case segmentAllocated:
			next = append(next, address)
			reserved += bytes
		case segmentFreed:
			if cache.Reserved == reserved {
				cache.Empty()
			}
			reserved -= bytes
		}
	}
	if cache.Reserved != reserved {
		t.Errorf("%d bytes reserved at the end, not %d", cache.Reserved, reserved)
	}
	t.Logf("%d events, %d bytes reserved", len(recorded.Events), reserved)
}
