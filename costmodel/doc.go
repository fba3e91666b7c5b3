// Package costmodel holds what a unit of a model costs under a workload, and
// what devices offer.
//
// A [Table] has one [Unit] per wrap unit. A device that holds some units goes
// through a timeline: weights and optimizer state throughout, saved
// activations that grow through forward and shrink through backward while
// gradients grow, a spike at the loss. The timeline is written once, as the
// plain [Walk] over the layers; [Run] is its closed form for a stretch of
// units, runs join in time order with [Run.Join], and a [Chain] answers for
// any stretch in O(1).
//
// Sizes are bytes as int64, times are seconds as float64; [Bytes] prints them.
package costmodel
