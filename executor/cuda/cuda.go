// Package cuda runs programs on NVIDIA GPUs. A device of a program is an arena on
// a GPU, mapped and never allocated, with a thread of its own that gives the GPU's
// queues what the program's streams have: several devices may be on one GPU, each
// with its own arena. What one device makes another one sees in a slot that it
// received, and nowhere else.
//
// It is built with the tag cuda, on Linux for x86-64 with cgo, and needs no CUDA
// toolkit for that; what it runs on is found when it opens. Package
// executor/internal/schedule has the steps, the links and the report of a step that
// hangs. This package makes the driver's calls, and its kernels.
package cuda
