//go:build cuda && linux && cgo && amd64

package driver

import (
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// Stream is a [schedule.Queue] of a GPU, Event its [schedule.Event]. Calls run in the order in
// which the stream gets them.
type Stream struct{ stream cu.Stream }

// NewStream makes a stream on the bound context, which waits for no other.
func NewStream() (*Stream, error) {
	stream, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return nil, of("cuStreamCreate", err)
	}
	enter("streams", 1, 0)
	return &Stream{stream}, nil
}

// Handle returns the driver's handle of the stream, for libraries.
func (stream *Stream) Handle() unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&stream.stream))
}

// Destroy destroys the stream once its work has ended.
func (stream *Stream) Destroy() error {
	if err := stream.stream.Destroy(); err != nil {
		return of("cuStreamDestroy", err)
	}
	enter("streams", -1, 0)
	return nil
}

// Synchronize waits until the work of the stream has ended.
func (stream *Stream) Synchronize() error {
	return of("cuStreamSynchronize", stream.stream.Synchronize())
}

// Await makes the stream wait for the last record of an event.
func (stream *Stream) Await(event schedule.Event) error {
	return of("cuStreamWaitEvent", stream.stream.Wait(event.(*Event).event, 0)) //nolint:errcheck // there are no others
}

// Fill sets bytes.
func (stream *Stream) Fill(at Address, value byte, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	return of("cuMemsetD8Async", cu.MemsetD8Async(cu.DevicePtr(at), value, bytes, stream.stream))
}

// Copy copies bytes from one place to another. The places may be on two GPUs if each
// reaches the other's arena.
func (stream *Stream) Copy(to, from Address, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	return of("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(cu.DevicePtr(to), cu.DevicePtr(from), bytes, stream.stream))
}

// Up copies pinned memory to the GPU, Down the other way. The memory must not change until the
// stream has copied it.
func (stream *Stream) Up(to Address, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	return of("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(cu.DevicePtr(to), unsafe.Pointer(unsafe.SliceData(from)), int64(len(from)), stream.stream))
}

// Down copies from the GPU into pinned memory.
func (stream *Stream) Down(to []byte, from Address) error {
	if len(to) == 0 {
		return nil
	}
	return of("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(to)), cu.DevicePtr(from), int64(len(to)), stream.stream))
}

// Event is a moment of a stream.
type Event struct{ event cu.Event }

// NewEvent makes an event on the bound context. A timed one costs more.
func NewEvent(timed bool) (*Event, error) {
	flags := cu.DisableTiming
	if timed {
		flags = cu.DefaultEvent
	}
	event, err := cu.MakeEvent(flags)
	if err != nil {
		return nil, of("cuEventCreate", err)
	}
	enter("events", 1, 0)
	return &Event{event}, nil
}

// Destroy destroys the event.
func (event *Event) Destroy() error {
	if err := cu.DestroyEvent(&event.event); err != nil {
		return of("cuEventDestroy", err)
	}
	enter("events", -1, 0)
	return nil
}

// Record sets the event to the moment at which the stream's work so far has ended.
func (stream *Stream) Record(event schedule.Event) error {
	return of("cuEventRecord", event.(*Event).event.Record(stream.stream)) //nolint:errcheck // there are no others
}

// Ended reports whether the stream has passed the event's last record.
func (event *Event) Ended() (bool, error) {
	err := event.event.Query()
	if err == cu.NotReady { //nolint:errorlint // cu's errors are its codes
		return false, nil
	}
	return err == nil, of("cuEventQuery", err)
}

// Since returns the time from begin to event, which must be timed and have ended.
func (event *Event) Since(begin schedule.Event) (time.Duration, error) {
	milliseconds, err := begin.(*Event).event.Elapsed(event.event) //nolint:errcheck // there are no others
	return time.Duration(milliseconds * float64(time.Millisecond)), of("cuEventElapsedTime", err)
}
