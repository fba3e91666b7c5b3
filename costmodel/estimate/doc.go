// Package estimate turns a graph and a workload into a table of costs.
//
// [Resolve] fills in what a workload leaves open and refuses what contradicts itself or the model;
// [Table] costs every unit under it. Between the two nothing is guessed: a table is of one strategy
// under one engine.
//
// The flow is one way. Package layers computes what one GPU stores of every layer and what its op
// costs, under the rules of the engine; package units adds layers up; the engine (package engine)
// adds what else a GPU holds; the warnings come last.
package estimate
