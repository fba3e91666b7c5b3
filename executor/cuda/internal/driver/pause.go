//go:build cuda && linux && cgo && amd64

package driver

/*
static void rest(void) { for (int i = 0; i < 16; i++) __builtin_ia32_pause(); }
*/
import "C"

// Pause is for busy waiting. It takes a microsecond or less, and loads neither the caches nor the
// core's other thread.
func Pause() { C.rest() }
