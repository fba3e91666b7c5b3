package recipe

// Bytes is the space that a tensor takes.
func (tensor *Tensor) Bytes() int64 { return tensor.bytes() }
