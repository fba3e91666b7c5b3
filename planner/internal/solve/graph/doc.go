// Package graph is the problem of placing a graph's nodes on devices with the least load of the
// busiest device. It has the problem, its rules and its score.
//
// A device's load is the time of its nodes plus its transfers. If other devices read a node's
// output, the node costs its Transfer once on its own device and once on each of these devices.
// This is the model of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph
// Operators" (NeurIPS 2020), §3.
//
// Package downset solves it for pipelines: every device takes the difference of two down-sets of
// the graph. It keeps an [Incumbent], the best answer and bound so far, and ends with
// [Problem.Certify]. That calls [Problem.Score], which recomputes the value from the definitions
// and shares no code with the solver.
package graph
