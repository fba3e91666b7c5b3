// Package latency places a graph's nodes on accelerators and CPUs so that one
// sample is through as early as it can be.
//
// It is the latency of Tarnawski et al., "Efficient Algorithms for Device
// Placement of DNN Graph Operators" (NeurIPS 2020), §3 and appendix A. An
// accelerator is called once: it waits for all inputs of its nodes, fetches
// them one after the other, runs its nodes one after the other, sends what
// others read, and only then is anything that it made to be had. An output is
// fetched once by each accelerator that reads it and sent once, whoever reads
// it. A node on the CPUs runs as soon as its inputs are there, for as many of
// them run at once as there are; it pays for no transfers. What an accelerator
// holds at a time is bounded. Where it may be called several times, its calls
// come one after the other, each a call as above; what one of them hands to
// the next goes through the CPU's memory.
//
// Score judges from these rules alone. The solver's own sums are in
// evaluate.go; the bound, which rests on none of them, in path.go.
package latency
