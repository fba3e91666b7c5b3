// Package gpuusage reports GPUs' used memory and the processes that use it, from NVML. It covers
// all processes, and needs no context on any GPU.
package gpuusage

import (
	"os"
	"slices"

	"github.com/devmap-dev/devmap/executor/nvml"
)

// Snapshot is the used memory of every GPU of the machine at one moment.
type Snapshot struct {
	library *nvml.Library
	gpus    []nvml.GPU
	before  []state // by GPU
	err     error   // why it is unknown
}

// state is the used memory of a GPU: in all, and by visible processes.
type state struct {
	used      int64
	processes int64
}

// Look takes a snapshot. If NVML is missing, the snapshot's methods report that.
func Look() *Snapshot {
	snapshot := new(Snapshot)
	if snapshot.library, snapshot.err = nvml.Open(); snapshot.err != nil {
		snapshot.library = nil
		return snapshot
	}
	snapshot.gpus, snapshot.err = snapshot.library.GPUs()
	for i := range snapshot.gpus {
		now, err := stateOf(&snapshot.gpus[i], os.Getpid())
		if err != nil {
			snapshot.err = err
		}
		snapshot.before = append(snapshot.before, now)
	}
	return snapshot
}

// stateOf reads a GPU, and leaves out the process but.
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

// find returns the index of a GPU; -1 if NVML does not show it.
func (snapshot *Snapshot) find(uuid string) int {
	return slices.IndexFunc(snapshot.gpus, func(gpu nvml.GPU) bool { return gpu.UUID == uuid })
}

// Free returns a GPU's free memory now; known is false if NVML does not report it.
func (snapshot *Snapshot) Free(uuid string) (bytes int64, known bool) {
	at := snapshot.find(uuid)
	if at < 0 || snapshot.err != nil {
		return 0, false
	}
	memory, err := snapshot.gpus[at].Memory()
	return memory.Free, err == nil
}

// Close closes NVML.
func (snapshot *Snapshot) Close() {
	if snapshot.library != nil {
		snapshot.library.Close() //nolint:errcheck // nothing was written
	}
}
