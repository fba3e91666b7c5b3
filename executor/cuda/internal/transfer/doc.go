// Package transfer moves bytes between the host and arenas: through one ring of
// page-locked memory that all devices share, at the rate of a GPU's link. What is
// poured is read by many goroutines and summed up on both sides. Without the tag
// cuda it is empty.
package transfer
