// Package assignment is the placing of units on any device, beneath the methods
// for it: which units have the same costs, when they run, how much memory they
// take of a device, and the bounds of every map.
//
// Units of the same costs with nothing between them in time are one kind. A device's
// peak depends on how many it holds of a kind, not on which. So a map is a table of
// counts: each device has a [Load], a segment tree of summaries by position, and a
// change costs O(log positions).
//
// At any one moment of a step the devices together hold at least what all units hold
// then. The best moment gives the average bound, as a bin packing's is its sum over its
// bins (Martello and Toth, Knapsack Problems, 1990, §8.3). Kinds of units that
// alternate, in any order, give a problem of few kinds ([Problem.Relaxed]). Its bounds
// hold for this problem, too.
package assignment
