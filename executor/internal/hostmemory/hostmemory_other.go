//go:build !linux

package hostmemory

// Limits returns nil: limits are not known here, and an allocation that exceeds one fails.
func Limits() []FreeMemory { return nil }
