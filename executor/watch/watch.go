// Package watch reads the memory in use on GPUs while a command of any engine runs, and compares
// its peaks with a plan. It takes no GPU memory itself: it asks NVML, or nvidia-smi if this build
// has no NVML. It reads the memory in use many times a second. It lists the owners, if the driver
// shows them, when that has changed.
package watch

import (
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/nvml"
)

// GPU is a GPU of the machine. UUID is the same as CUDA's. GPUs are in NVML's order, that of their
// places on the bus.
type GPU struct {
	UUID, Name string
	Total      int64 // bytes
	Cut        bool  // in MIG mode
}

// Source is the source of figures.
type Source struct {
	Name            string  `json:"name"` // with the driver's version
	IntervalSeconds float64 `json:"interval_seconds"`
	GranuleBytes    int64   `json:"granule_bytes"` // figures are whole multiples of it
	Note            string  `json:"note,omitzero"` // what it does not report
}

// Interval is the time between two readings.
func (source *Source) Interval() time.Duration {
	return time.Duration(source.IntervalSeconds * float64(time.Second))
}

// Reader reads the memory in use on GPUs. It is for one goroutine.
type Reader interface {
	Source() Source
	GPUs() []GPU
	// Used fills in the bytes in use on each GPU now, by all processes.
	Used(into []int64) error
	// Follow begins to read some of the GPUs at the source's interval, once.
	Follow(gpus []int) error
	// Take calls each with every reading since the last Take. when is the time since the first
	// reading, used the bytes in use on each followed GPU by all processes. The error says why
	// there will be no more.
	Take(each func(when time.Duration, used []int64)) error
	// Processes returns the processes that compute on a GPU. An error is only about this list.
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
