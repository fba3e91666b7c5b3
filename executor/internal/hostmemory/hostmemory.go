// Package hostmemory reports how much memory of the host this process may still take.
package hostmemory

// FreeMemory is a limit to the memory of the process, and how much of it is left.
type FreeMemory struct {
	Place string // as messages name it: this machine's memory
	Free  int64  // bytes; negative if the limit is exceeded
}

// Tightest returns the limit with the least memory left, or fallback if none has less.
func Tightest(limits []FreeMemory, fallback FreeMemory) FreeMemory {
	for _, limit := range limits {
		if limit.Free < fallback.Free {
			fallback = limit
		}
	}
	return fallback
}
