package executor

import (
	"context"
	"time"
)

// Sleeper is a [Machine] that releases the memory of its arenas and allocates it again. The
// addresses are the same, so that everything that was prepared remains usable.
type Sleeper interface {
	// Sleep copies what outlasts a step, and has changed since the last copy, into the host's
	// memory. Then it sets every byte of the arenas to Poison and releases them. If it fails or ctx
	// ends earlier, the machine is awake as before. onProgress is called with 0 bytes when all
	// copies have started, and again when they have ended. bytes is what was copied.
	Sleep(ctx context.Context, onProgress func(bytes, of int64)) (bytes int64, err error)
	// Wake maps all arenas, which takes the time mapped, and copies back what was retained. Every
	// other byte is Poison again, or zero if loading sets it to zero. If it fails or ctx ends, no
	// arena is mapped, and the machine sleeps as before.
	Wake(ctx context.Context, onProgress func(bytes, of int64)) (mapped time.Duration, bytes int64, err error)
}
