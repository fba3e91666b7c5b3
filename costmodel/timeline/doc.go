// Package timeline says what a device holds at every moment of a step.
//
// A device that holds some units goes through a timeline: weights and
// optimizer state throughout, saved activations that grow through forward and
// shrink through backward while gradients grow, a spike at the loss. The
// timeline is written once, as the plain [Walk] over the layers; [Summary] is
// its closed form for a stretch of units, summaries join in time order with
// [Summary.Join], and a [Chain] answers for any stretch in O(1).
package timeline
