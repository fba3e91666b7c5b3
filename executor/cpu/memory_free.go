package cpu

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/program"
)

// processReserve is the memory that remains for everything outside of arenas: kernels' tiles, the
// heap, stacks.
const processReserve = 64 << 20

// lack returns a [*executor.MemoryError] if all arenas together exceed the tightest limit. It names
// the first device whose arena does not fit.
func lack(devices []program.Device, limits []hostmemory.FreeMemory) error {
	need := needed(devices)
	tightest := hostmemory.Tightest(limits, hostmemory.FreeMemory{Free: need + processReserve})
	free := max(tightest.Free-processReserve, 0)
	if need <= free {
		return nil
	}
	left := free
	for i := range devices {
		if left -= devices[i].Arena; left < 0 {
			return &executor.MemoryError{Device: devices[i].ID, Need: need, Free: free, Place: tightest.Place}
		}
	}
	return nil
}

// needed returns the bytes that the arenas take together. A program's arenas are below 2^62 bytes
// each; the sum stops at a size that no machine has.
func needed(devices []program.Device) (need int64) {
	for i := range devices {
		need = min(need+devices[i].Arena, 1<<62)
	}
	return need
}
