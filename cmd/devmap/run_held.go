package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/nvml"
)

// holdings is what GPUs held before a worker was there, as NVML tells it: no
// context is needed for that.
type holdings struct {
	library *nvml.Library
	gpus    []nvml.GPU
	before  []int64 // bytes, by GPU
	err     error   // why it is not known
}

// lookAtGPUs looks at what every GPU holds.
func lookAtGPUs() *holdings {
	held := new(holdings)
	if held.library, held.err = nvml.Open(); held.err != nil {
		return held
	}
	held.gpus, held.err = held.library.GPUs()
	for i := range held.gpus {
		memory, err := held.gpus[i].Memory()
		if err != nil {
			held.err = err
		}
		held.before = append(held.before, memory.Used)
	}
	return held
}

func (held *holdings) close() {
	if held.library != nil {
		held.library.Close() //nolint:errcheck // nothing was written
	}
}

// Memory is given back in pieces, by a driver that takes its time: how long for, and
// how often that is looked at.
const (
	givingBack = 10 * time.Second
	lookAgain  = 50 * time.Millisecond
)

// givenBack says of every GPU in use whether it holds what it held before, a
// sentence each.
func (held *holdings) givenBack(uuids []string) []string {
	if held.err != nil {
		return []string{"what the GPUs hold now is not known: " + held.err.Error()}
	}
	var all []string
	for _, uuid := range uuids {
		at := slices.IndexFunc(held.gpus, func(gpu nvml.GPU) bool { return gpu.UUID == uuid })
		if at < 0 {
			all = append(all, fmt.Sprintf("what %s holds now is not known: NVML does not show it", uuid))
			continue
		}
		all = append(all, held.givenBackBy(at))
	}
	return all
}

// givenBackBy waits until the driver has what the process had, or does not take it
// back.
func (held *holdings) givenBackBy(at int) string {
	gpu := &held.gpus[at]
	for deadline := time.Now().Add(givingBack); ; time.Sleep(lookAgain) {
		memory, err := gpu.Memory()
		more := memory.Used - held.before[at]
		switch {
		case err != nil:
			return fmt.Sprintf("what %s holds now is not known: %v", gpu.Name, err)
		case more <= 0:
			return fmt.Sprintf("all memory of %s (%s) was given back", gpu.Name, gpu.UUID)
		case time.Now().After(deadline):
			return fmt.Sprintf("%s (%s) holds %v more than before the run", gpu.Name, gpu.UUID, costmodel.Bytes(more))
		}
	}
}
