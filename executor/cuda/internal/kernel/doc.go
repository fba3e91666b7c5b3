// Package kernel launches the kernels of package recipe on a GPU, by their names in the recipe.
// Without the tag cuda it is empty.
package kernel
