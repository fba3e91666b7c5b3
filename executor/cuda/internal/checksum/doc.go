// Package checksum sums bytes up as the kernel of that name does: what was read
// from a file is held to what a GPU then has. Without the tag cuda it is empty.
package checksum
