// Package timeline says what a device holds at every moment of a step.
//
// A device's peak is a timeline, not a sum: weights and optimizer states
// throughout, saved activations that grow through forward and shrink through
// backward while gradients grow, a spike at the loss. An engine writes it as a
// [Producer] of events and nothing else: [DeviceMap], [Pipeline], the engines of
// a [Replica], and [Arena], devmap's own, which runs both of the first.
//
// The events are read in two ways:
//
//   - [Walk] takes them one by one, by category, and names the largest moment.
//   - [FoldOf] adds them up to what they leave and the most on the way. Folds
//     join ([Fold.Join]), so that what is folded once answers for whatever it
//     is a part of: a [Summary] is that of a unit or of a stretch of units, a
//     [Chain] has that of any stretch in O(1), and as an engine's events are
//     the same for a summary as for its units, [Summary.Peak] and [StageChain]
//     answer for devices and ranks without looking at a unit.
//
// The solvers ask the second, and every answer is checked with the first.
package timeline
