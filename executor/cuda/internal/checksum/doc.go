// Package checksum computes the same sums as kernel checksum, to compare a file's bytes with those
// on a GPU. Without the tag cuda it is empty.
package checksum
