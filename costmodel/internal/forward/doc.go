// Package forward walks the forward of a diffusion component as diffusers 0.42 runs it without
// gradients, and says what is alive at its peak. A walk is its Python read line by line: a value
// lives until the last name that holds it is gone, and what a caller holds outlives the call.
package forward
