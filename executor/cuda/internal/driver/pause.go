//go:build cuda && linux && cgo && amd64

package driver

/*
static void rest(void) { for (int i = 0; i < 16; i++) __builtin_ia32_pause(); }
*/
import "C"

// Pause waits for a microsecond or less without load on caches and the core's other thread. It is
// for busy waiting.
func Pause() { C.rest() }
