// Package costmodel holds what a unit of a model costs under a workload, and what devices offer.
//
// A [Table] has one [Unit] per wrap unit. From units, package timeline computes what a device holds
// at every moment of a step.
//
// Sizes are bytes as int64, times are seconds as float64; [Bytes] prints them.
package costmodel
