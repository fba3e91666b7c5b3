package forward

// resnet is ResnetBlock2D.forward (resnet.py). The sum is divided by a scale,
// which makes one more tensor even where the scale is 1.
func (tape *tape) resnet(block module, input picture, timed bool) picture {
	hidden := tape.groupNorm(input)
	tape.replace(&hidden, tape.like(hidden))
	tape.replace(&hidden, tape.convolved(block, "conv1", hidden, hidden))
	if timed {
		active := tape.new(input.batch * block.inward("time_emb_proj"))
		added := tape.linear(block, "time_emb_proj", input.batch)
		tape.drop(active)
		tape.replace(&hidden, tape.like(hidden))
		defer tape.drop(added)
	}
	tape.replace(&hidden, tape.groupNorm(hidden))
	tape.replace(&hidden, tape.like(hidden))
	tape.replace(&hidden, tape.convolved(block, "conv2", hidden, hidden))
	first := input
	if block.has("conv_shortcut.weight") {
		first = tape.convolved(block, "conv_shortcut", input, hidden)
	}
	sum := hidden
	sum.strided = first.strided
	sum = tape.picture(sum)
	out := tape.like(sum)
	tape.drop(sum.value, hidden.value)
	if first.value != input.value {
		tape.drop(first.value)
	}
	return out
}

// cuDNN's attention takes heads of up to 256 values; what is wider goes to the
// memory-efficient kernel, which gathers results in single precision
// (sdp_utils.cpp: check_cudnn_tensor_shapes; attention.cu:
// _efficient_attention_forward).
const widestHead = 256

// pixelAttention is AttnProcessor2_0 of all places of a picture, with a norm
// before and a residual behind.
func (tape *tape) pixelAttention(attn module, input picture) picture {
	batch, tokens, dim := input.batch, input.frames*input.height*input.width, input.channels
	normed := tape.groupNorm(input)
	query, key, val := tape.linear(attn, "to_q", input.places()), tape.linear(attn, "to_k", input.places()), tape.linear(attn, "to_v", input.places())
	out := tape.attend(batch, 1, tokens, tokens, dim)
	if dim > widestHead {
		tape.drop(tape.single(batch * tokens * dim))
	}
	tape.become(&out, tape.linear(attn, "to_out.0", input.places()))
	sum := input
	sum.strided = true
	sum = tape.picture(sum)
	tape.drop(out)
	result := tape.like(sum)
	tape.drop(sum.value, normed.value, query, key, val)
	return result
}
