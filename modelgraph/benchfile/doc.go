// Package benchfile reads the public partitioning problems: graphs with
// measured times and sizes per node, as the authors of dnn-partitioning, Piper
// and PipeDream publish them. It gives the parsed form, from which the planner
// builds the authors' own problems, and a [modelgraph.Graph] with declared
// costs, which plans like any other model.
package benchfile
