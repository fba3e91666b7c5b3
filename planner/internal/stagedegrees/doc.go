// Package stagedegrees plans pipelines whose stages choose their form: how many
// GPUs they have, as replicas and as parts that share matrices, and whether
// blocks are recomputed. The chain of units is cut by package stagechain's exact
// dynamic program over stages of alike GPUs; a step, which is no sum over stages,
// is then played, and bounded from below by a dynamic program of its own.
package stagedegrees
