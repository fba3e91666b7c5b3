// Package transfer moves bytes between the host and arenas at the rate of a GPU's link. They go
// through a ring of pinned memory that the GPU's devices share. An upload has many reading
// goroutines, and checksums on both sides. Without the tag cuda it is empty.
package transfer
