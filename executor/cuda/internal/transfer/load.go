//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/weights"
)

// Load is values and the place in an arena that they are for.
type Load struct {
	End    *End
	Offset int64
	Values weights.Range
}

// LateError is a copy that does not end.
type LateError struct {
	After time.Duration
	Place string // what is copied
}

func (err *LateError) Error() string {
	return fmt.Sprintf("%s: its copy did not end within %v", err.Place, err.After)
}

// Hands are how many read, and whether they and who tells the GPU are more than there are
// processors.
type Workers struct {
	Readers int
	Crowded bool
}

// Pour reads values and returns when arenas have them, whose ends are primed and on the
// ring's GPU. Readers fill parts of the ring together, a share each. One thread gives the
// GPU the copy of what is full, and behind many of them, on a stream beside, a kernel that
// sums up what came; what it finds is compared with what was read. told is called with
// how many bytes more are there. A copy that takes longer than patience is given up
// ([*LateError]), and the ring with it.
func (ring *Ring) Upload(ctx context.Context, loads []Load, workers Workers, timeout time.Duration, onProgress func(bytes int64)) error {
	ring.uploading.Lock() // who has some of the parts gets all of them
	defer ring.uploading.Unlock()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	upload := ring.newUpload(ring.pieces(loads))
	upload.context, upload.stop, upload.timeout, upload.crowded = ctx, stop, timeout, workers.Crowded
	context.AfterFunc(ctx, func() { upload.stopped.Store(true) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		upload.run(workers.Readers)
		close(upload.uploaded)
	}()
	often := time.NewTicker(time.Millisecond)
	defer often.Stop()
	for bytes := range upload.uploaded {
		onProgress(bytes)
		if len(upload.uploaded) > 0 {
			continue
		}
		select { // whom every stretch wakes takes a processor from readers
		case <-often.C:
		case <-ended:
		}
	}
	return context.Cause(ctx)
}
