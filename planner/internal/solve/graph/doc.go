// Package graph is the problem of placing a graph's nodes on devices so that
// the busiest device is as little busy as it can be: its form, its rules and
// its judge.
//
// A device's load is the time of its nodes plus the transfers it takes part
// in: a node whose output is read elsewhere costs its Transfer once on its own
// device, however many read it, and once on each device that reads it. This
// is the model of Tarnawski et al., "Efficient Algorithms for Device Placement
// of DNN Graph Operators" (NeurIPS 2020), §3.
//
// Package downset answers for pipelines: every device takes the difference of
// two down-sets of the graph. It keeps an [Incumbent], the best answer and bound
// so far, and ends in [Problem.Certify]: [Problem.Score], which judges an
// assignment from the definitions alone and shares no code with the solver, works
// the value out again.
package graph
