//go:build cuda && linux && cgo

package nvml

import (
	"slices"
	"time"
)

// How long the processes of a GPU must stay the same, and how long Settled waits for that.
const (
	still         = 100 * time.Millisecond
	settleTimeout = 3 * time.Second
)

// Settled returns the GPU's memory and processes once no process comes or goes. A process that has
// ended keeps memory for some time, which a later reading would lack. If processes never settle, it
// is the last reading.
func (gpu *GPU) Settled() (Memory, []Process, error) {
	before, err := gpu.Processes()
	if err != nil {
		return Memory{}, nil, err
	}
	for begin := time.Now(); len(before) > 0 && time.Since(begin) < settleTimeout; {
		time.Sleep(still)
		now, err := gpu.Processes()
		if err != nil {
			return Memory{}, nil, err
		}
		if slices.Equal(before, now) {
			break
		}
		before = now
	}
	memory, err := gpu.Memory()
	return memory, before, err
}
