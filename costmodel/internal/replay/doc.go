// Package replay asks PyTorch's caching allocator for the tensors of a training step one by one, in
// the order in which autograd makes and drops them, so that what it reserves comes out: pools
// depend on the order and the sizes of requests, which sums of bytes do not say.
//
// A [Run] is a process: its allocator, and tensors with their references. A [Model] is a decoder in
// numbers; [Model.Forward] makes the tensors of its forward and returns its backward. A strategy
// acts in between by [Hooks]: parameters that are gathered for a module, gradients that are reduced
// as they come.
package replay
