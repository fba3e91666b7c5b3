// Package pattern writes words into memory of a GPU with kernels, and checks that they are there:
// words that are all different, or poison. Without the tag cuda it is empty.
package pattern
