//go:build cuda && linux && cgo && amd64

package driver

// static void rest(void) { for (int i = 0; i < 16; i++) __builtin_ia32_pause(); }
import "C"

// Pause is a microsecond or less in which a processor leaves caches and its neighbour
// alone: for who waits awake.
func Pause() { C.rest() }
