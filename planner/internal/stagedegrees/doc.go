// Package stagedegrees plans pipelines whose stages choose their form: the number of replicas, the
// tensor-parallel GPUs, and recomputation. Package stagechain's exact dynamic program over stages
// of identical GPUs cuts the chain of units. A step is not a sum over stages: this package
// simulates it, and bounds it by its own dynamic program.
package stagedegrees
