// Package benchmark solves the problems in files of public benchmarks (package
// modelgraph/benchfile). It minimizes the largest load of the file's devices, with a proof, and
// writes the answer in the format of the file's authors.
//
// A dnn-partitioning file asks for contiguous parts (package downset), a Piper file for pipeline
// stages (package stages).
package benchmark
