// Package workloads turns the public partitioning problems that
// modelgraph/workloads reads into the problems that their authors pose:
// dnn-partitioning's into planner/partition's, Piper's and PipeDream's into
// planner/stages'.
package workloads
