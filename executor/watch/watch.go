// Package watch reads what GPUs hold while a command of any engine runs, and compares
// its peaks with a plan. It takes no memory of a GPU itself: NVML is asked, or
// nvidia-smi where this build has no NVML. What a GPU holds is read many times a
// second; who holds it, where the driver tells, when that has changed.
package watch

import (
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/nvml"
)

// GPU is one of the machine. UUID is as CUDA has it; GPUs are in NVML's order,
// that of their places on the bus.
type GPU struct {
	UUID, Name string
	Total      int64 // bytes
	Cut        bool  // in MIG mode
}

// Source is where figures come from.
type Source struct {
	Name            string  `json:"name"` // with the driver's version
	IntervalSeconds float64 `json:"interval_seconds"`
	GranuleBytes    int64   `json:"granule_bytes"` // figures are whole multiples of it
	Note            string  `json:"note,omitzero"` // what it does not tell
}

// Interval is the time between two readings.
func (source *Source) Interval() time.Duration {
	return time.Duration(source.IntervalSeconds * float64(time.Second))
}

// Reader reads what GPUs hold. It is for one goroutine.
type Reader interface {
	Source() Source
	GPUs() []GPU
	// Used fills the bytes that all processes hold of each GPU now.
	Used(into []int64) error
	// Follow begins to read some of the GPUs at the source's interval, once.
	Follow(gpus []int) error
	// Take passes on the readings since it was last called, each with its time since
	// the first and the bytes that all processes held of each GPU that is followed.
	// The error is why there will be none any more.
	Take(each func(when time.Duration, used []int64)) error
	// Processes are those that compute on a GPU. An error is what could not be
	// read, and nothing else fails with it.
	Processes(gpu int) ([]nvml.Process, error)
	Close() error
}

// Open finds a reader: NVML, or nvidia-smi.
func Open() (Reader, error) {
	library, missing := openNVML()
	if missing == nil {
		return library, nil
	}
	program, absent := openSMI(smiProgram, smiOften, smiWhose, smiPatient)
	if absent == nil {
		return program, nil
	}
	return nil, fmt.Errorf("no GPU can be watched: %w", errors.Join(missing, absent))
}
