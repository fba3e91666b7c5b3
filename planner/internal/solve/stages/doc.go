// Package stages cuts a graph into a straight pipeline: stages in order, one
// device each, all devices alike, with a choice per node between alternatives
// such as "keep the activations" and "recompute them".
//
// A stage is the difference of two down-sets of the graph. Counted from the
// end, the y-th stage keeps y micro-batches in flight, so that its memory is
// y·ΣInFlight + ΣFixed over the alternatives chosen. Its time is that of its
// alternatives and of the edges that cross its border. This is the model of
// Tarnawski et al., "Piper: Multidimensional Planner for DNN Parallelization"
// (NeurIPS 2021), §3, with the degrees of data and tensor parallelism at 1;
// without memory and transfers it is that of PipeDream (SOSP 2019), §3.1,
// without replicas.
//
// [Solve] finds the pipeline whose slowest stage is the fastest and proves it;
// [Problem.Score] judges pipelines and shares no code with the solver.
package stages
