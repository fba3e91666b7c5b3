package cpu

import (
	"os"

	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
)

// memory is what the process used before it mapped arenas.
type memory struct {
	before, peak int64 // resident bytes, and their peak
	known        bool
}

// measure resets the peak if the system allows it: 5 in clear_refs sets it to the current size
// (proc_pid_clear_refs(5)).
func measure() memory {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	now, peak, known := resident()
	return memory{before: now, peak: peak, known: known}
}

// growth returns the bytes from measure to the peak since then, or -1 if they are unknown. If an
// old peak was neither reset nor exceeded, the current size replaces it.
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
