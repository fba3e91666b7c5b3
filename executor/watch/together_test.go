package watch

import (
	"strings"
	"testing"
)

// TestTogether: peaks of processes that met add up, those of processes one after
// another do not; of one that was killed no one knows when it ended.
func TestTogether(t *testing.T) {
	t.Parallel()
	const uuid = "GPU-00000000-0000-0000-0000-000000000001"
	process := func(at Moment, begin, end float64, allocated int64) Process {
		return Process{At: at, StartSeconds: &begin, WrittenSeconds: end, GPUs: []ProcessGPU{
			{Index: 0, UUID: uuid, AllocatedPeakBytes: allocated, ReservedPeakBytes: allocated + 5},
			{Index: 1, UUID: "other"},
		}}
	}
	for _, is := range []struct {
		name      string
		processes []Process
		want      OnGPU
	}{
		{"one", []Process{process(AtExit, 1, 5, 100)}, OnGPU{1, Peak{100, 100}, Peak{105, 105}, 0, 0, 0}},
		{"side by side", []Process{process(AtExit, 1, 5, 100), process(AtExit, 2, 3, 40)}, OnGPU{2, Peak{100, 140}, Peak{105, 150}, 0, 0, 0}},
		{"one after another", []Process{process(AtExit, 6, 9, 40), process(AtExit, 1, 5, 100)}, OnGPU{2, Peak{100, 100}, Peak{105, 105}, 0, 0, 0}},
		{"one begins as the other ends", []Process{process(AtExit, 1, 5, 100), process(AtExit, 5, 9, 40)}, OnGPU{2, Peak{100, 140}, Peak{105, 150}, 0, 0, 0}},
		{"the first killed", []Process{process(AtExit, 6, 9, 40), process(WhileRunning, 1, 5, 100)}, OnGPU{2, Peak{100, 140}, Peak{105, 150}, 0, 0, 1}},
		{"two of three at once", []Process{process(AtExit, 0, 10, 40), process(AtExit, 1, 2, 60), process(AtExit, 3, 4, 70)}, OnGPU{3, Peak{70, 110}, Peak{75, 120}, 0, 0, 0}},
	} {
		found := Together(is.processes)
		if found[uuid] != is.want || found["other"] != (OnGPU{}) || len(found) != 2 {
			t.Errorf("%s: %+v, want %+v", is.name, found, is.want)
		}
	}
	old := process(AtOutOfMemory, 0, 1, 9)
	old.GPUs[0].UUID, old.GPUs[0].OutOfMemory, old.Failed = "", 1, &FailedAllocation{WantedBytes: 77}
	if got := Together([]Process{old})["cuda:0"]; got != (OnGPU{1, Peak{9, 9}, Peak{14, 14}, 1, 77, 0}) {
		t.Errorf("%+v", got)
	}
}

// TestUntold: the message on what is not known.
func TestUntold(t *testing.T) {
	t.Parallel()
	started := 1.5
	none, idle := Process{PID: 3, Torch: "2"}, Process{PID: 4, StartSeconds: &started, Allocator: "pluggable"}
	used, failed := Process{PID: 5, StartSeconds: &started, GPUs: make([]ProcessGPU, 1)}, Process{PID: 6, SnapshotError: "OSError: full"}
	for _, is := range []struct {
		processes []Process
		want      string
	}{
		{nil, "no PyTorch data: no process imported torch"},
		{[]Process{none}, "torch was imported, and used no GPU"},
		{[]Process{idle, none}, "torch's allocator (pluggable) tells nothing"},
		{[]Process{none, used}, ""},
		{[]Process{failed, used}, "process 6 left no snapshot of torch's memory: OSError: full"},
	} {
		if got := Untold(is.processes); !strings.HasPrefix(got, is.want) || is.want == "" && got != "" {
			t.Errorf("%q, want %q", got, is.want)
		}
	}
}
