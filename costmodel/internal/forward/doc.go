// Package forward walks the forward of a diffusion component as diffusers 0.42 runs it without
// gradients, and returns its peak. A walk follows the Python line by line: a value lives until its
// last name is gone, and a caller's values outlive the call.
package forward
