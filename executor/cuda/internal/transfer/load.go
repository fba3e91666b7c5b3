//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/weights"
)

// Load is values, and their place in an arena.
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

// Workers are the number of readers, and whether the readers and pumps are more than there
// are processors.
type Workers struct {
	Readers int
	Crowded bool
}

// Upload reads values and returns when arenas have them. Their ends must be primed and on
// the ring's GPU. Readers fill parts of the ring together, a share each. One thread gives
// the GPU the copy of each full part. After a stretch of parts, it launches a kernel on
// another stream that sums up what arrived. Upload compares the sum with that of the bytes
// read. It calls onProgress with the number of bytes that arrived since the last call. If a
// copy takes longer than the timeout, Upload returns a [*LateError], and the ring is lost.
func (ring *Ring) Upload(ctx context.Context, loads []Load, workers Workers, timeout time.Duration, onProgress func(bytes int64)) error {
	ring.uploading.Lock() // an upload that has some of the parts gets all of them
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
		select { // waking at every stretch would take a processor from readers
		case <-often.C:
		case <-ended:
		}
	}
	return context.Cause(ctx)
}
