// Package partition places the nodes of a graph on devices so that the
// busiest device is as little busy as it can be.
//
// A device's load is the time of its nodes plus the transfers it takes part
// in: a node whose output is read elsewhere costs its Transfer once on its own
// device, however many read it, and once on each device that reads it. This
// is the model of Tarnawski et al., "Efficient Algorithms for Device Placement
// of DNN Graph Operators" (NeurIPS 2020), §3, whose workloads are in
// fixtures/workloads.
//
// [Contiguous] answers for pipelines: every device takes the difference of two
// down-sets of the graph. [Any] answers for any assignment. Both give a lower
// bound and name the argument for it; [Problem.Score] judges both and shares
// no code with them.
package partition
