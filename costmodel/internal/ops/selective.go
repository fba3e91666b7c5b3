package ops

// Selective works out what torchtitan's selective checkpointing keeps of a
// block (torchtitan/parallelisms/parallelize_llama.py,
// _apply_ac_to_transformer_block, mode "op"): the outputs of SDPA's flash and
// memory-efficient kernels, and of every second aten.mm from the first on. A
// linear layer with a bias is aten.addmm, which is neither kept nor counted.
// The zero value stands before a block; layers follow in the order they run
// ([Selective.Kept]).
type Selective struct{ products int }

// product is the next aten.mm, rows × width.
func (selective *Selective) product(shape *Shape, rows, width int64) int64 {
	selective.products++
	if selective.products%2 == 0 {
		return 0
	}
	return shape.elementBytes() * rows * width
}
