// Package pattern writes words into memory of a GPU and reads back whether they are in
// it, by kernels: words that are all different, or poison. Without the tag cuda it is
// empty.
package pattern
