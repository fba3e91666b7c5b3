//go:build cuda && linux && cgo

package nvml

// #include "library.h"
import "C"

import (
	"errors"
	"time"
	"unsafe"
)

// readings is how many readings are taken at once.
const readings = 64

// Follower reads the memory in use on GPUs at regular intervals, on its own thread. A program that
// wakes for each reading takes more of a core than the readings.
type Follower struct {
	follower *C.Follower
	gpus     int
	when     [readings]C.longlong
	used     []C.ulonglong
}

// Follow begins to read.
func (*Library) Follow(gpus []GPU, every time.Duration) (*Follower, error) {
	handles := make([]unsafe.Pointer, len(gpus)+1) // one more, so that the array is not empty
	for i := range gpus {
		handles[i] = gpus[i].handle
	}
	follower := C.follow_begin(&handles[0], C.uint(len(gpus)), C.longlong(every))
	if follower == nil {
		return nil, errors.New("no thread can be begun that reads what GPUs hold")
	}
	return &Follower{follower: follower, gpus: len(gpus), used: make([]C.ulonglong, readings*len(gpus)+1)}, nil
}

// Take calls each with every reading since the last Take. when is the time since the first reading,
// used the bytes in use on each GPU by all processes. used is valid until each returns. The error
// says why there will be no more.
func (follower *Follower) Take(each func(when time.Duration, used []int64)) error {
	bytes := make([]int64, follower.gpus)
	for {
		var code C.int
		taken := C.follow_take(follower.follower, &follower.when[0], &follower.used[0], readings, &code)
		if taken < 0 {
			return check("nvmlDeviceGetMemoryInfo", code)
		}
		for i := range int(taken) {
			for j := range bytes {
				bytes[j] = int64(follower.used[i*follower.gpus+j])
			}
			each(time.Duration(follower.when[i]), bytes)
		}
		if taken < readings {
			return nil
		}
	}
}

// End ends the reading.
func (follower *Follower) End() { C.follow_end(follower.follower) }
