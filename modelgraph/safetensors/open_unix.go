//go:build unix

package safetensors

import "syscall"

// openNonblock keeps the opening of a FIFO from waiting for its writer. It has
// no effect on a regular file.
const openNonblock = syscall.O_NONBLOCK
