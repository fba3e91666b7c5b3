package forward

// modulated is norm(x) * (1 + scale) + shift in one expression.
func (t *tape) modulated(batch, rows, dim int64) *value {
	normed := t.layerNorm(rows, dim)
	return t.scaleShift(normed, batch, rows*dim, dim)
}

// modulation is linear(silu(temb)): vectors that the block's gates are views of.
func (t *tape) modulation(mod module, name string, batch int64) *value {
	active := t.new(batch * mod.inward(name))
	out := t.linear(mod, name, batch)
	t.drop(active)
	return out
}

// timestepEmbedding is TimestepEmbedding: two projections with a SiLU between.
func (t *tape) timestepEmbedding(mod module, rows int64) *value {
	first := t.linear(mod, "linear_1", rows)
	active := t.new(rows * mod.out("linear_1"))
	t.drop(first)
	out := t.linear(mod, "linear_2", rows)
	t.drop(active)
	return out
}

// feedForward is FeedForward of rows: each step's result reuses its input's name.
func (t *tape) feedForward(mod module, rows int64, gated bool) *value {
	hidden := mod.inward("net.2")
	first := t.linear(mod, "net.0.proj", rows)
	active := t.new(rows * hidden)
	if gated { // GEGLU: values × gelu(gates), both views of one projection
		product := t.new(rows * hidden)
		t.drop(active)
		active = product
	}
	t.drop(first)
	out := t.linear(mod, "net.2", rows)
	t.drop(active)
	return out
}

// upsampled doubles the sides, and convolves.
func (t *tape) upsampled(mod module, name string, pic picture) picture {
	return t.grown(mod, name, pic, 2*pic.height, 2*pic.width)
}

// grown makes a picture of other sides, and convolves.
func (t *tape) grown(mod module, name string, pic picture, height, width int64) picture {
	large := pic
	large.height, large.width = height, width
	large.strided = pic.strided && pic.batch > 1
	large = t.picture(large)
	out := t.convolved(mod, name, large, large)
	t.drop(large.value)
	return out
}

// halved halves the sides; padded adds a row and a column first (downsampling.py, Downsample2D).
func (t *tape) halved(mod module, name string, pic picture, padded bool) picture {
	from := pic
	from.value = nil
	if padded {
		from.height, from.width = pic.height+1, pic.width+1
		from = t.picture(from)
	}
	small := pic
	small.height, small.width = pic.height/2, pic.width/2
	if !padded {
		small.height, small.width = (pic.height+1)/2, (pic.width+1)/2
	}
	out := t.convolved(mod, name, from, small)
	t.drop(from.value)
	return out
}

// resnet is ResnetBlock2D.forward (resnet.py). The sum is divided by a scale,
// which makes one more tensor even if the scale is 1.
func (t *tape) resnet(block module, input picture, timed bool) picture {
	hidden := t.groupNorm(input)
	t.replace(&hidden, t.like(hidden))
	t.replace(&hidden, t.convolved(block, "conv1", hidden, hidden))
	if timed {
		active := t.new(input.batch * block.inward("time_emb_proj"))
		added := t.linear(block, "time_emb_proj", input.batch)
		t.drop(active)
		t.replace(&hidden, t.like(hidden))
		defer t.drop(added)
	}
	t.replace(&hidden, t.groupNorm(hidden))
	t.replace(&hidden, t.like(hidden))
	t.replace(&hidden, t.convolved(block, "conv2", hidden, hidden))
	first := input
	if block.has("conv_shortcut.weight") {
		first = t.convolved(block, "conv_shortcut", input, hidden)
	}
	sum := hidden
	sum.strided = first.strided
	sum = t.picture(sum)
	out := t.like(sum)
	t.drop(sum.value, hidden.value)
	if first.value != input.value {
		t.drop(first.value)
	}
	return out
}

// cuDNN's attention takes heads of up to 256 values. Wider ones use the memory-efficient kernel,
// which gathers results in single precision (sdp_utils.cpp, check_cudnn_tensor_shapes;
// attention.cu, _efficient_attention_forward).
const widestHead = 256

// pixelAttention is AttnProcessor2_0 of all places of a picture, with a norm and a residual.
func (t *tape) pixelAttention(attn module, input picture) picture {
	batch, tokens, dim := input.batch, input.frames*input.height*input.width, input.channels
	normed := t.groupNorm(input)
	query, key, val := t.linear(attn, "to_q", input.places()), t.linear(attn, "to_k", input.places()), t.linear(attn, "to_v", input.places())
	out := t.attend(batch, 1, tokens, tokens, dim)
	if dim > widestHead {
		t.drop(t.single(batch * tokens * dim))
	}
	t.become(&out, t.linear(attn, "to_out.0", input.places()))
	sum := input
	sum.strided = true
	sum = t.picture(sum)
	t.drop(out)
	result := t.like(sum)
	t.drop(sum.value, normed.value, query, key, val)
	return result
}

// levels runs the blocks of a list: their residual blocks, then what follows them. The
// input of a block is held until it is done.
func (t *tape) levels(mod module, list string, x *picture, resnet func(block module, hidden picture) picture, then func(block module, i int, hidden *picture)) {
	for i := range mod.count(list) {
		block := mod.at(list, i)
		hidden := *x
		hidden.hold()
		for j := range block.count("resnets") {
			t.replace(&hidden, resnet(block.at("resnets", j), hidden))
		}
		then(block, i, &hidden)
		t.replace(x, hidden)
	}
}
