// Package monitor reads GPUs independently of the machines that run on them: what this
// process has of the driver's, the free memory of each GPU, and whether it can be allocated.
package monitor
