// Package hostmemory says how much memory of the host this process may still take.
package hostmemory

// Room is a limit to what the process may take, and what is left of it.
type FreeMemory struct {
	Place string // as messages name it: this machine's memory
	Free  int64  // bytes; below zero where the limit is passed already
}

// Tightest is the room that has least left, or otherwise where none has less than that.
func Tightest(limits []FreeMemory, fallback FreeMemory) FreeMemory {
	for _, limit := range limits {
		if limit.Free < fallback.Free {
			fallback = limit
		}
	}
	return fallback
}
