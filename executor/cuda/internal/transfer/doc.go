// Package transfer moves bytes between the host and arenas, through a ring of pinned memory that a
// GPU's devices share, at the rate of its link. An upload has many reading goroutines, and
// checksums on both sides. Without the tag cuda it is empty.
package transfer
