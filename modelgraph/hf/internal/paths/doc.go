// Package paths takes module paths apart: their parts, patterns with stars for numbers, and the tree of modules that the
// tensor names of a checkpoint spell.
package paths
