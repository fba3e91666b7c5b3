// Package cuda runs programs on NVIDIA GPUs. A device of a program is an arena on a GPU, mapped and
// never allocated. A thread gives the device's instructions to the GPU's queues. Several devices
// may be on one GPU, each with its own arena. Devices share data only through received slots.
//
// The package builds with the tag cuda, on Linux for x86-64 with cgo, and without a CUDA toolkit:
// it finds libraries when it opens. Package executor/internal/schedule has the steps, the links and
// the report of a step that hangs. This package makes the driver's calls, and its kernels.
package cuda
