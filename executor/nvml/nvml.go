// Package nvml reads what GPUs hold as NVIDIA's management library tells it, which
// sees every process and needs no context on the GPU. The library is looked for
// when it is opened; a build without cgo, or for another system than Linux, says
// that it cannot.
package nvml

import (
	"os"
	"slices"
)

// Memory is a GPU's, in bytes. Reserved is what driver and firmware keep; Used is
// what contexts and allocations of all processes take in addition; a driver older
// than 510 counts the former with it ([Library.Lacks]).
type Memory struct{ Total, Reserved, Used, Free int64 }

// Process is one that computes on a GPU.
type Process struct {
	ID   int
	Used int64 // bytes; -1: the driver does not tell, as in containers
}

// Self is this process's number among those on a GPU: its own or, inside a container,
// that of the one that came since before. 0: there is none.
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
	return came[0] // of more than one the others came too, and are reported
}

// Numbered is the process of a number; nil: it is not there.
func Numbered(processes []Process, id int) *Process {
	at := slices.IndexFunc(processes, func(process Process) bool { return process.ID == id })
	if at < 0 {
		return nil
	}
	return &processes[at]
}
