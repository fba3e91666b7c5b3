//go:build cuda && linux && cgo

package nvml

import (
	"slices"
	"time"
)

// How long a GPU whose processes do not change is looked at, and for how long one
// whose processes do.
const (
	still         = 100 * time.Millisecond
	settleTimeout = 3 * time.Second
)

// Settled is what the GPU holds, and who is there, once no one comes or goes: a
// process that has ended holds memory for some time yet, and what would be measured
// at the same time would lack it later. Where somebody always moves it is the last reading.
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
