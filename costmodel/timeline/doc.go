// Package timeline says what a device holds at every moment of a step.
//
// A device's peak is a timeline, not a sum: weights and optimizer states
// throughout, saved activations that grow through forward and shrink through
// backward while gradients grow, a spike at the loss. An engine writes it as
// events and nothing else: that of a device map, of a rank of a pipeline, those
// of replicas, and the arena of devmap's own.
//
// The events are read in two ways:
//
//   - One by one, by category, with a name for the largest moment: [DeviceMap],
//     [Replica] and [RankPeak].
//   - As a sum of what they leave and the most on the way. Such sums join, so that
//     a sum answers for whatever it is a part of. A [Summary] is that of a unit or
//     of a stretch of units, and [Stretches] has that of any stretch in O(1). An
//     engine's events are the same for a summary as for its units: [Summary.Peak]
//     and [Ranks] answer for devices and ranks without looking at a unit.
//
// The solvers ask the second, and every answer is checked with the first.
package timeline
