// Package estimate turns a graph and a workload into a table of costs.
//
// [Resolve] completes a workload and refuses contradictions; [Table] computes the costs of every unit. A
// table is of one strategy under one engine.
//
// Package layers computes each layer's bytes on one GPU and its op's costs, under the engine's rules.
// Package units adds layers up. Package engine adds the GPU's other memory. Warnings come last.
package estimate
