// Package cpu is the reference that every other backend is judged by: kernels
// as plain as they can be written, on this machine's processor. A device is a
// mapping of memory of its own; what others have reaches it by messages alone.
package cpu
