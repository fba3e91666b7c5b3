// Package timeline computes a device's memory at every moment of a step.
//
// A device's peak is a timeline, not a sum. Weights and optimizer states are there throughout.
// Saved activations grow through forward and shrink through backward, while gradients grow. Each
// engine emits events: for a device map, a pipeline's rank, replicas, and devmap's own arena.
//
// The events are read in two ways:
//
//   - One by one, by category, with a name for the largest moment: [DeviceMap], [Replica] and
//     [RankStep].
//   - As the net change and the peak of a sequence. Such pairs join, so a [Summary] stands for one
//     unit or a stretch, and [Stretches] has any stretch's in O(1). An engine emits the same events
//     for a summary as for its units: [Summary.Peak] and [Ranks] need no units.
//
// The solvers use the second; the first checks every answer.
package timeline
