// Package nvml reads what GPUs hold as NVIDIA's management library tells it, which
// sees every process and needs no context on the GPU. The library is looked for
// when it is opened; a build without cgo, or for another system than Linux, says
// that it cannot.
package nvml

// Memory is a GPU's, in bytes. Reserved is what driver and firmware keep; Used is
// what contexts and allocations of all processes take beside that; a driver older
// than 510 counts the former with it ([Library.Lacks]).
type Memory struct{ Total, Reserved, Used, Free int64 }

// Process is one that computes on a GPU.
type Process struct {
	ID   int
	Used int64 // bytes; -1: the driver does not tell, as in containers
}
