// Package costmodel holds the costs of a model's units under a workload, and what devices offer.
//
// A [Table] has one [Unit] per wrap unit. From units, package timeline computes a device's memory
// at every moment of a step.
//
// Sizes are bytes as int64, times are seconds as float64; [Bytes] prints them.
package costmodel
