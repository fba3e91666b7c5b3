// Package transfer moves bytes between the host and arenas: through a ring of
// page-locked memory that a GPU's devices share, at the rate of its link. What is
// poured is read by many goroutines and summed up on both sides. Without the tag
// cuda it is empty.
package transfer
