package serving

import "slices"

// Model is what an engine's memory depends on.
type Model struct {
	Architecture string
	Blocks       []Block
	Input        int64 // bytes of the embeddings, which stay on the host
	Output       int64 // bytes of the last norm and the head; a shared head counts once more
	Width        int64 // of the hidden state
	Vocabulary   int64
	Heads        int64 // of a query, the most of a block
	Experts      int64 // 0: none
	ExpertsUsed  int64 // a token
	Trained      int64 // the longest context that it was trained for; 0: unknown
	Window       int64 // tokens that a sliding block sees
	Latent       bool  // keys and values are one latent (DeepSeek)
	Judged       bool  // its buffers were compared with llama.cpp's own figures
	// Unknown is a tensor that llama.cpp does not know, of a judged architecture; empty: none.
	Unknown string

	padding   int64 // what CUDA adds to Output
	scaled    bool  // the embeddings are multiplied by a constant
	period    int   // blocks repeat after so many; 0: they do not
	positions int64 // of a token: one, or one for each axis of an image
}

// Block is a layer with attention, or a recurrent one.
type Block struct {
	Bytes int64 // of all tensors
	// Expert are the bytes of its experts among them, which may stay on the host.
	Expert int64
	// Largest is the largest tensor of experts.
	Largest int64
	// Key and Value are the elements of a token in the cache; both 0: no attention.
	Key, Value int64
	Sliding    bool  // it sees [Model.Window] tokens
	State      int64 // bytes of a sequence's recurrent state
	// Heads of a query, FeedForward and ExpertWidth are the widths of its values.
	Heads, FeedForward, ExpertWidth int64

	padding, expertPadding int64 // what CUDA adds to Bytes and Expert
	head                   int64 // width of a query's head
	form                   form
}

// Recurrent reports a model with recurrent blocks.
func (model *Model) Recurrent() bool {
	return slices.ContainsFunc(model.Blocks, func(block Block) bool { return block.State > 0 })
}

// repeats finds after how many blocks they repeat, as far as buffers depend on them.
func (model *Model) repeats() int {
	count := len(model.Blocks)
	for period := 1; period <= count/2; period++ {
		same := true
		for i := period; i < count && same; i++ {
			same = model.Blocks[i].like(&model.Blocks[i-period])
		}
		if same {
			return period
		}
	}
	return 0
}

// like reports a block with the same values.
func (block *Block) like(other *Block) bool {
	one, two := *block, *other
	one.Bytes, one.Expert, one.Largest = two.Bytes, two.Expert, two.Largest
	one.padding, one.expertPadding = two.padding, two.expertPadding
	return one == two
}
