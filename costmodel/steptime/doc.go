// Package steptime holds how long a step takes: what the host issues and the device waits for, the
// order in which a pipeline's ranks run their micro-batches, and the collectives between them.
//
// Times are seconds as float64.
package steptime
