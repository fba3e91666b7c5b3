// Package benchfile reads the public partitioning problems: graphs with measured times and sizes
// per node, as published by the authors of dnn-partitioning, Piper and PipeDream. It returns the
// parsed form, from which the planner builds the authors' own problems. It also returns a
// [modelgraph.Graph] with declared costs, which plans like any other model.
package benchfile
