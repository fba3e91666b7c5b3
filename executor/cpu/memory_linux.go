package cpu

import (
	"os"

	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
)

// memory is what the process held before it mapped arenas.
type memory struct {
	before, peak int64 // resident, and the most there ever was
	known        bool
}

// measure forgets earlier peaks where that is allowed: with 5, clear_refs sets
// the most to what there is (proc_pid_clear_refs(5)).
func measure() memory {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	now, peak, known := resident()
	return memory{before: now, peak: peak, known: known}
}

// growth is that to the most since then. Where an earlier peak was not forgotten
// and not reached again, it is what there is now.
func (memory *memory) growth() int64 {
	now, peak, known := resident()
	if !known || !memory.known {
		return -1
	}
	if peak <= memory.peak {
		peak = now
	}
	return max(peak-memory.before, 0)
}

func resident() (now, peak int64, known bool) {
	root := os.DirFS("/")
	now, some := hostmemory.Field(root, "proc/self/status", "VmRSS:")
	peak, known = hostmemory.Field(root, "proc/self/status", "VmHWM:")
	return now << 10, peak << 10, some && known
}
