// Package replay sends the tensors of a training step to a model of PyTorch's caching allocator, in
// the order in which autograd makes and drops them. Reserved memory depends on the order and the
// sizes of requests; sums of bytes cannot give it.
//
// A [Run] is a process: its allocator, and tensors with their references. A [Model] is a decoder in
// numbers; [Model.Forward] makes the tensors of its forward and returns its backward. A strategy's
// [Hooks] gather parameters for a module, and reduce gradients.
package replay
