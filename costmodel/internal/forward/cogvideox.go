package forward

// cogVideoX is CogVideoXTransformer3DModel.forward
// (cogvideox_transformer_3d.py): one row of text and video in attention and
// feed-forward, two names elsewhere.
func cogVideoX(tape *tape, root module, call Call) {
	channels, patch, deep := root.inward("patch_embed.proj"), root.side("patch_embed.proj", 2), int64(1)
	frames, height, width := latentFrames(call.Frames), call.Height/pixels, call.Width/pixels
	if patch == 0 { // 1.5: patches of two frames, by a matrix
		patch, deep = 2, 2
		channels /= patch * patch * deep
	}
	sizes := joint{batch: call.Batch, image: call.share(frames / deep * (height / patch) * (width / patch)), text: call.ShareText(), dim: root.out("patch_embed.proj")}
	inputs := []*value{
		tape.new(sizes.batch * channels * frames * height * width), tape.new(sizes.textRows() * root.inward("patch_embed.text_proj")), tape.alloc(8 * sizes.batch),
	}
	turned, placed := root.rotary, root.has("patch_embed.pos_embedding")
	var angles []*value
	if turned {
		angles = []*value{tape.single(sizes.image * sizes.dim / root.at("transformer_blocks", 0).in("attn1").headCount()), tape.single(sizes.image * sizes.dim / root.at("transformer_blocks", 0).in("attn1").headCount())}
	}
	temb := tape.timestepEmbedding(root.in("time_embedding"), sizes.batch)
	both := tape.cogPatches(root, sizes, placed)
	image, text := both, both.hold()
	tape.blocks(root, "transformer_blocks", func(block module) { tape.cogBlock(block, sizes, turned, &image, &text) })
	tape.become(&image, tape.layerNorm(sizes.imageRows(), sizes.dim))
	tape.jointEnd(root, sizes, &image, temb)
	tape.drop(image, text, temb)
	tape.drop(angles...)
	tape.drop(inputs...)
}

// cogPatches is CogVideoXPatchEmbed: patches are brought into rows, joined with
// the text, and places added where there are any.
func (tape *tape) cogPatches(root module, sizes joint, placed bool) *value {
	text := tape.linear(root, "patch_embed.text_proj", sizes.textRows())
	patches := tape.conv(root, "patch_embed.proj", sizes.imageRows())
	rows := tape.new(sizes.imageRows() * sizes.dim)
	tape.drop(patches)
	both := tape.new(sizes.rows() * sizes.dim)
	if placed {
		tape.become(&both, tape.new(sizes.rows()*sizes.dim))
	}
	tape.drop(text, rows)
	return both
}

// cogBlock is CogVideoXBlock.
func (tape *tape) cogBlock(block module, sizes joint, turned bool, image, text **value) {
	elements, added := sizes.imageRows()*sizes.dim, sizes.textRows()*sizes.dim
	first := tape.modulation(block, "norm1.linear", sizes.batch)
	normed, normedText := tape.modulated(sizes.batch, sizes.imageRows(), sizes.dim), tape.modulated(sizes.batch, sizes.textRows(), sizes.dim)
	attended := tape.cogAttention(block.in("attn1"), sizes, turned)
	product := tape.new(elements)
	hidden := tape.new(elements)
	tape.drop(product)
	product = tape.new(added)
	hiddenText := tape.new(added)
	tape.drop(product)
	second := tape.modulation(block, "norm2.linear", sizes.batch)
	again, againText := tape.modulated(sizes.batch, sizes.imageRows(), sizes.dim), tape.modulated(sizes.batch, sizes.textRows(), sizes.dim)
	tape.become(&normed, again)
	tape.become(&normedText, againText)
	tape.drop(first)
	tape.become(&normed, tape.new(elements+added))
	result := tape.feedForward(block.in("ff"), sizes.rows(), false)
	product = tape.new(elements)
	tape.become(&hidden, tape.new(elements))
	tape.drop(product)
	product = tape.new(added)
	tape.become(&hiddenText, tape.new(added))
	tape.drop(product, second, normed, normedText, attended, result)
	tape.become(image, hidden)
	tape.become(text, hiddenText)
}

// cogAttention is CogVideoXAttnProcessor2_0. The norms of queries and keys want
// them head by head, and copy them so (layer_norm_kernel.cu: expect_contiguous);
// the result is copied back into rows.
func (tape *tape) cogAttention(attn module, sizes joint, turned bool) *value {
	elements, width := sizes.rows()*sizes.dim, sizes.dim/attn.headCount()
	joined := tape.new(elements)
	query, key, val := tape.linear(attn, "to_q", sizes.rows()), tape.linear(attn, "to_k", sizes.rows()), tape.linear(attn, "to_v", sizes.rows())
	for _, name := range []**value{&query, &key} {
		copied := tape.new(elements)
		tape.become(name, tape.layerNorm(elements/width, width))
		tape.drop(copied)
	}
	if turned {
		tape.drop(tape.rotated(sizes.imageRows() * sizes.dim))
		tape.drop(tape.rotated(sizes.imageRows() * sizes.dim))
	}
	out := tape.attend(sizes.batch, attn.headCount(), sizes.image+sizes.text, sizes.image+sizes.text, sizes.dim)
	tape.become(&joined, out) // the name of the rows is taken
	tape.become(&joined, tape.new(elements))
	projected := tape.linear(attn, "to_out.0", sizes.rows())
	tape.drop(joined, query, key, val)
	return projected
}
