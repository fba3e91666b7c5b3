// Package assignment is the basis of the methods that place units on any device. It finds which
// units have the same costs, when they run, how much of a device's memory they use, and bounds for
// every map.
//
// Units are one kind if they have the same costs and run next to each other. A device's peak
// depends on the number of units of each kind, not on which ones. So a map is a table of counts.
// Each device has a [Load], a segment tree of summaries by position, and a change costs O(log
// positions).
//
// At any moment of a step, all devices together hold at least the memory of all units at that
// moment. The best moment gives the average bound, like the sum divided by the bins in bin packing
// (Martello and Toth, Knapsack Problems, 1990, §8.3). If units of a few kinds alternate,
// [Problem.Relaxed] lets them run in any order. Its bounds hold for this problem, too.
package assignment
