// Package held says what GPUs hold and who holds it, as NVML tells: of all
// processes, and without a context on any GPU.
package held

import (
	"os"
	"slices"

	"github.com/devmap-dev/devmap/executor/nvml"
)

// Held is what every GPU of the machine held at a moment.
type Held struct {
	library *nvml.Library
	gpus    []nvml.GPU
	before  []state // by GPU
	err     error   // why it is not known
}

// state is what a GPU holds: bytes of all processes, and of each that the driver
// tells of.
type state struct {
	used      int64
	processes int64
}

// Look looks at what every GPU holds. Where NVML says nothing, what is asked of it
// says so.
func Look() *Held {
	held := new(Held)
	if held.library, held.err = nvml.Open(); held.err != nil {
		held.library = nil
		return held
	}
	held.gpus, held.err = held.library.GPUs()
	for i := range held.gpus {
		now, err := stateOf(&held.gpus[i], os.Getpid())
		if err != nil {
			held.err = err
		}
		held.before = append(held.before, now)
	}
	return held
}

// stateOf reads a GPU, of whose processes one is not counted.
func stateOf(gpu *nvml.GPU, but int) (now state, err error) {
	memory, err := gpu.Memory()
	if err != nil {
		return now, err
	}
	processes, err := gpu.Processes()
	for _, process := range processes {
		if process.ID != but {
			now.processes += max(0, process.Used)
		}
	}
	now.used = memory.Used
	return now, err
}

// find is a GPU's place; -1 where NVML does not show it.
func (held *Held) find(uuid string) int {
	return slices.IndexFunc(held.gpus, func(gpu nvml.GPU) bool { return gpu.UUID == uuid })
}

// Free is what a GPU had free; not known where NVML does not tell.
func (held *Held) Free(uuid string) (bytes int64, known bool) {
	at := held.find(uuid)
	if at < 0 || held.err != nil {
		return 0, false
	}
	memory, err := held.gpus[at].Memory()
	return memory.Free, err == nil
}

// Close ends the looking.
func (held *Held) Close() {
	if held.library != nil {
		held.library.Close() //nolint:errcheck // nothing was written
	}
}
