//go:build !linux

package hostmemory

// Limits are not known here: an allocation that exceeds one fails.
func Limits() []FreeMemory { return nil }
