// Package checksum sums bytes up as the kernel of that name does, to compare a file's bytes
// with those on a GPU. Without the tag cuda it is empty.
package checksum
