// Package benchmark answers the problems that files of public benchmarks define
// (package modelgraph/benchfile): the least largest load on the devices that the
// file names, with a proof, in the form of the file's authors.
//
// A dnn-partitioning file defines contiguous parts (package downset), a Piper file
// the stages of a pipeline (package stages).
package benchmark
