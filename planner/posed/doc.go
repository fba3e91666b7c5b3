// Package posed answers the problems that files of public benchmarks pose
// (package modelgraph/benchfile): the least largest load on the devices that the
// file names, or the least latency there, with a proof, in the form of the file's authors.
package posed
