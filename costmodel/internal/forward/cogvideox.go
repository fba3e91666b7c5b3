package forward

type cogRun struct{ joint }

// cogVideoX is CogVideoXTransformer3DModel.forward (cogvideox_transformer_3d.py): one row of text
// and video in attention and feed-forward, two names elsewhere.
func cogVideoX(tape *tape, root module, call Call) {
	channels, patch, deep := root.inward("patch_embed.proj"), root.side("patch_embed.proj", 2), int64(1)
	frames, height, width := latentFrames(call.Frames), call.Height/pixels, call.Width/pixels
	if patch == 0 { // 1.5: patches of two frames, by a matrix
		patch, deep = 2, 2
		channels /= patch * patch * deep
	}
	run := cogRun{joint{tape: tape, batch: call.Batch, image: call.share(frames / deep * (height / patch) * (width / patch)), text: call.ShareText(), dim: root.out("patch_embed.proj")}}
	inputs := []*value{
		run.new(run.batch * channels * frames * height * width), run.new(run.textRows() * root.inward("patch_embed.text_proj")), run.alloc(8 * run.batch),
	}
	turned, placed := root.rotary, root.has("patch_embed.pos_embedding")
	var angles []*value
	if turned {
		angles = []*value{run.single(run.image * run.dim / root.at("transformer_blocks", 0).in("attn1").headCount()), run.single(run.image * run.dim / root.at("transformer_blocks", 0).in("attn1").headCount())}
	}
	temb := run.timestepEmbedding(root.in("time_embedding"), run.batch)
	both := run.patches(root, placed)
	image, text := both, both.hold()
	run.blocks(root, "transformer_blocks", func(block module) { run.block(block, turned, &image, &text) })
	run.become(&image, run.layerNorm(run.imageRows(), run.dim))
	run.end(root, &image)
	run.drop(image, text, temb)
	run.drop(angles...)
	run.drop(inputs...)
}

// patches is CogVideoXPatchEmbed: patches are brought into rows, joined with
// the text, and places added if there are any.
func (run cogRun) patches(root module, placed bool) *value {
	text := run.linear(root, "patch_embed.text_proj", run.textRows())
	patches := run.conv(root, "patch_embed.proj", run.imageRows())
	rows := run.new(run.imageRows() * run.dim)
	run.drop(patches)
	both := run.new(run.rows() * run.dim)
	if placed {
		run.become(&both, run.new(run.rows()*run.dim))
	}
	run.drop(text, rows)
	return both
}

// block is CogVideoXBlock.
func (run cogRun) block(block module, turned bool, image, text **value) {
	elements, added := run.imageRows()*run.dim, run.textRows()*run.dim
	first := run.modulation(block, "norm1.linear", run.batch)
	normed, normedText := run.modulated(run.batch, run.imageRows(), run.dim), run.modulated(run.batch, run.textRows(), run.dim)
	attended := run.attention(block.in("attn1"), turned)
	hidden := run.gatedSum(elements)
	hiddenText := run.gatedSum(added)
	second := run.modulation(block, "norm2.linear", run.batch)
	again, againText := run.modulated(run.batch, run.imageRows(), run.dim), run.modulated(run.batch, run.textRows(), run.dim)
	run.become(&normed, again)
	run.become(&normedText, againText)
	run.drop(first)
	run.become(&normed, run.new(elements+added))
	result := run.feedForward(block.in("ff"), run.rows(), false)
	run.become(&hidden, run.gatedSum(elements))
	run.become(&hiddenText, run.gatedSum(added))
	run.drop(second, normed, normedText, attended, result)
	run.become(image, hidden)
	run.become(text, hiddenText)
}

// attention is CogVideoXAttnProcessor2_0. The norms of queries and keys want them head by head, and
// copy them so (layer_norm_kernel.cu: expect_contiguous); the result is copied back into rows.
func (run cogRun) attention(attn module, turned bool) *value {
	elements, width := run.rows()*run.dim, run.dim/attn.headCount()
	joined := run.new(elements)
	query, key, val := run.linear(attn, "to_q", run.rows()), run.linear(attn, "to_k", run.rows()), run.linear(attn, "to_v", run.rows())
	for _, name := range []**value{&query, &key} {
		copied := run.new(elements)
		run.become(name, run.layerNorm(elements/width, width))
		run.drop(copied)
	}
	if turned {
		run.drop(run.rotated(run.imageRows() * run.dim))
		run.drop(run.rotated(run.imageRows() * run.dim))
	}
	out := run.attend(run.batch, attn.headCount(), run.image+run.text, run.image+run.text, run.dim)
	run.become(&joined, out) // the name of the rows is taken
	run.become(&joined, run.new(elements))
	projected := run.linear(attn, "to_out.0", run.rows())
	run.drop(joined, query, key, val)
	return projected
}
