// Package assignment is the placing of units on any device, beneath the methods
// for it: which units have the same costs, when they run, how much memory they
// take of a device, and the bounds of every map.
//
// Units of the same costs with nothing between them in time are one kind: which
// of them a device holds makes no difference to its peak, only how many, so that
// a map is a table of counts (a [Load] each device, a segment tree of summaries
// by position: a change costs O(log positions)). At any one moment of a step
// the devices hold, together, at least what all units hold then; the best moment
// gives the average bound, as a bin packing's is its sum over its bins (Martello
// and Toth, Knapsack Problems, 1990, §8.3). Kinds of units that alternate,
// in any order, give a problem of few kinds whose bounds hold for this one
// ([Problem.Relaxed]).
package assignment
