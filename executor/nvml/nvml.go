// Package nvml reads the memory in use on GPUs from NVIDIA's management library. That sees every
// process and needs no context on the GPU. The library is looked for when it is opened. A build
// without cgo, or for another system than Linux, returns an error then.
package nvml

import (
	"os"
	"slices"
)

// Memory is the memory of a GPU in bytes. Reserved is kept by driver and firmware. Used is taken in
// addition by contexts and allocations of all processes. A driver older than 510 counts Reserved in
// Used ([Library.Lacks]).
type Memory struct{ Total, Reserved, Used, Free int64 }

// Process is a process that computes on a GPU.
type Process struct {
	ID   int
	Used int64 // bytes; -1: the driver does not report it, as in containers
}

// Self returns this process's number among those on a GPU: its own or, inside a container, that of
// a process that came since before. 0: there is none.
func Self(before, now []Process) int {
	var came []int
	for _, process := range now {
		if process.ID == os.Getpid() {
			return process.ID
		}
		if Numbered(before, process.ID) == nil {
			came = append(came, process.ID)
		}
	}
	if len(came) == 0 {
		return 0
	}
	return came[0] // if several came, the others are reported as others
}

// Numbered returns the process with a number; nil: it is not there.
func Numbered(processes []Process, id int) *Process {
	at := slices.IndexFunc(processes, func(process Process) bool { return process.ID == id })
	if at < 0 {
		return nil
	}
	return &processes[at]
}
