// Package posed turns the public partitioning problems that
// modelgraph/benchfile reads into the problems that their authors pose.
package posed
