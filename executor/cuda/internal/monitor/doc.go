// Package monitor reads GPUs independently of the machines that run on them. It finds what this
// process has of the driver's, and what memory of each GPU can be allocated.
package monitor
