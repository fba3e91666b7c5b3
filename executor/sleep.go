package executor

import (
	"context"
	"time"
)

// Sleeper is a [Machine] that gives the memory of its arenas back and takes some again,
// at the same addresses, so that everything that was prepared stays of use.
type Sleeper interface {
	// Sleep copies what outlasts a step, and is not what was copied already, into the
	// host's memory, sets every byte of the arenas to Poison, and gives them back. Where
	// it fails or ctx ends before they are, the machine is awake as before. told is
	// called when all copies are under way, with no byte, and when they have ended;
	// bytes is what was copied.
	Sleep(ctx context.Context, onProgress func(bytes, of int64)) (bytes int64, err error)
	// Wake maps all arenas, which takes as long as mapped says, and copies back what was
	// kept; every other byte is Poison again, and zero where loading sets it so. Where
	// it fails or ctx ends, no arena is mapped, and the machine sleeps as before.
	Wake(ctx context.Context, onProgress func(bytes, of int64)) (mapped time.Duration, bytes int64, err error)
}
