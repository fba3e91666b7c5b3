// Package steptime predicts the time of a step: what the host issues and the device waits for, a
// pipeline's ranks and their micro-batches, and collectives.
//
// Times are seconds as float64.
package steptime
