package forward

import "strings"

// textEncoder is a text encoder of Transformers: the widest moment of its blocks, over the prompt's
// few hundred tokens. Its activations are less than a hundredth of its weights.
func textEncoder(tape *tape, root module, call Call) {
	rows := call.Batch * call.Text
	widest, dim, heads := textSizes(tape, root, rows)
	if tape.streamed { // the table of tokens is the largest of what comes and goes
		tape.drop(tape.new(root.largest()))
	}
	ids := tape.alloc(8 * rows)
	stream := []*value{tape.new(rows * dim), tape.new(rows * dim)}
	if root.relative() {
		// T5 computes attention itself (modeling_t5.py, T5Attention). It has the bias of every pair
		// for all prompts and blocks, scores, also in single precision, and their softmax. Ten
		// tensors are as wide as the stream.
		bias := heads * call.Text * call.Text
		pairs := call.Batch * bias
		if strings.HasPrefix(root.class, "UMT5") { // is called with a mask, which is each prompt's
			bias = pairs
		}
		stream = append(stream, tape.new(bias))
		scores := []*value{tape.new(pairs), tape.single(pairs)}
		if tape.width < 4 {
			scores = append(scores, tape.single(pairs))
		}
		for range 8 {
			scores = append(scores, tape.new(rows*dim))
		}
		tape.drop(scores...)
	}
	if strings.HasPrefix(root.class, "Llama") || strings.HasPrefix(root.class, "Qwen") {
		for range root.blocks() { // pipelines take a state of before the end: all are kept
			stream = append(stream, tape.new(rows*dim))
		}
	}
	// gelu_new keeps four tensors as wide as the feed-forward at once (activations.py:
	// NewGELUActivation), in addition to the gate's operand.
	var inner []*value
	for range 5 {
		inner = append(inner, tape.new(rows*widest))
	}
	tape.drop(inner...)
	tape.drop(ids)
	tape.drop(stream...)
}

// largest is the largest matrix.
func (found *modules) largest() int64 {
	most := int64(0)
	for _, shape := range found.shapes {
		if len(shape) == 2 {
			most = max(most, shape[0]*shape[1])
		}
	}
	return most
}

// blocks is the length of the longest list.
func (found *modules) blocks() int {
	most := 0
	for _, count := range found.counts {
		most = max(most, count)
	}
	return most
}

// relative reports a table of relative positions.
func (found *modules) relative() bool {
	for name := range found.shapes {
		if strings.Contains(name, "relative_attention_bias") {
			return true
		}
	}
	return false
}

// textSizes counts the products of an encoder's matrices over rows, and finds the widest matrix,
// its input, and the number of heads.
func textSizes(tape *tape, root module, rows int64) (widest, dim, heads int64) {
	for name, shape := range root.shapes {
		if len(shape) != 2 || strings.Contains(name, "embed") || strings.Contains(name, "shared") || strings.Contains(name, "visual") || strings.HasPrefix(name, "lm_head") {
			continue
		}
		tape.flops += 2 * float64(rows) * float64(shape[0]) * float64(shape[1])
		tape.traffic += float64(tape.width) * float64(shape[0]) * float64(shape[1])
		if shape[0] > widest {
			widest, dim = shape[0], shape[1]
		}
	}
	for _, count := range root.heads {
		heads = max(heads, count)
	}
	return widest, dim, heads
}
