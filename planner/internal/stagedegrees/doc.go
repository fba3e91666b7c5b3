// Package stagedegrees plans pipelines whose stages choose their form: how many
// GPUs they have, as replicas and as parts that share matrices, and whether
// blocks are recomputed. Package stagechain's exact dynamic program over stages of
// identical GPUs cuts the chain of units. A step is not a sum over stages: package
// stagedegrees simulates it, and bounds it by a dynamic program of its own.
package stagedegrees
