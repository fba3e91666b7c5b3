// Package kernel is the kernels of package recipe on a GPU: of each, by its name
// in the recipe, what launches it. Without the tag cuda it is empty.
package kernel
