package forward

// hunyuanVideo is HunyuanVideoTransformer3DModel.forward
// (transformer_hunyuan_video.py). The text's refiner, a few rows at the
// beginning, is left out: it is no peak.
func hunyuanVideo(tape *tape, root module, call Call) {
	channels := root.inward("x_embedder.proj")
	deep, patch := root.side("x_embedder.proj", 2), root.side("x_embedder.proj", 3)
	frames, height, width := latentFrames(call.Frames), call.Height/pixels, call.Width/pixels
	sizes := joint{batch: call.Batch, image: call.share(frames / deep * (height / patch) * (width / patch)), text: call.ShareText(), dim: root.out("x_embedder.proj")}
	context := root.inward("context_embedder.proj_in")
	inputs := []*value{
		tape.new(sizes.batch * channels * frames * height * width), tape.alloc(8 * sizes.batch), tape.new(sizes.textRows() * context), tape.new(sizes.textRows()),
		tape.new(sizes.batch * root.inward("time_text_embed.text_embedder.linear_1")), tape.new(sizes.batch),
	}
	turn := sizes.dim / root.at("transformer_blocks", 0).in("attn").headCount()
	axes := []*value{tape.single(sizes.image * turn), tape.single(sizes.image * turn)}
	angles := []*value{tape.single(sizes.image * turn), tape.single(sizes.image * turn)}
	tape.drop(axes...)
	temb := tape.conditions(root.in("time_text_embed"), sizes.batch)
	image := tape.conv(root, "x_embedder.proj", sizes.imageRows())
	text := tape.linear(root, "context_embedder.proj_in", sizes.textRows())
	mask := tape.alloc(sizes.batch * (sizes.image + sizes.text))
	tape.blocks(root, "transformer_blocks", func(block module) { tape.hunyuanDouble(block, sizes, &image, &text) })
	tape.blocks(root, "single_transformer_blocks", func(block module) { tape.hunyuanSingle(block, sizes, &image, &text) })
	tape.jointEnd(root, sizes, &image, temb)
	tape.drop(image, text, temb, mask)
	tape.drop(angles...)
	tape.drop(inputs...)
}

// hunyuanDouble is HunyuanVideoTransformerBlock.
func (tape *tape) hunyuanDouble(block module, sizes joint, image, text **value) {
	elements, added := sizes.imageRows()*sizes.dim, sizes.textRows()*sizes.dim
	sum := func(size int64) *value {
		product := tape.new(size)
		total := tape.new(size)
		tape.drop(product)
		return total
	}
	imageMod := tape.modulation(block, "norm1.linear", sizes.batch)
	normed := tape.modulated(sizes.batch, sizes.imageRows(), sizes.dim)
	textMod := tape.modulation(block, "norm1_context.linear", sizes.batch)
	normedText := tape.modulated(sizes.batch, sizes.textRows(), sizes.dim)
	attended, attendedText := tape.hunyuanAttention(block.in("attn"), sizes, true)
	hidden := sum(elements)
	hiddenText := sum(added)
	tape.become(&normed, tape.layerNorm(sizes.imageRows(), sizes.dim))
	tape.become(&normedText, tape.layerNorm(sizes.textRows(), sizes.dim))
	tape.become(&normed, tape.scaleShift(normed.hold(), sizes.batch, elements, sizes.dim))
	tape.become(&normedText, tape.scaleShift(normedText.hold(), sizes.batch, added, sizes.dim))
	result := tape.feedForward(block.in("ff"), sizes.imageRows(), false)
	resultText := tape.feedForward(block.in("ff_context"), sizes.textRows(), false)
	tape.become(&hidden, sum(elements))
	tape.become(&hiddenText, sum(added))
	tape.drop(imageMod, textMod, normed, normedText, attended, attendedText, result, resultText)
	tape.become(image, hidden)
	tape.become(text, hiddenText)
}

// hunyuanAttention is HunyuanVideoAttnProcessor2_0. Without projections of its
// own the text stands in one row with the video, of which only the video is
// turned, and the result is not projected.
func (tape *tape) hunyuanAttention(attn module, sizes joint, both bool) (image, text *value) {
	own, added, whole := sizes.imageRows()*sizes.dim, sizes.textRows()*sizes.dim, sizes.rows()*sizes.dim
	rows, elements, width := sizes.imageRows(), own, sizes.dim/attn.headCount()
	var joined *value
	if !both {
		rows, elements = sizes.rows(), whole
		joined = tape.new(whole)
	}
	query, key, val := tape.linear(attn, "to_q", rows), tape.linear(attn, "to_k", rows), tape.linear(attn, "to_v", rows)
	tape.become(&query, tape.ownRMSNorm(elements, width))
	tape.become(&key, tape.ownRMSNorm(elements, width))
	for _, name := range []**value{&query, &key} {
		turned := tape.rotated(own)
		if !both {
			row := tape.new(whole)
			tape.drop(turned)
			turned = row
		}
		tape.become(name, turned)
	}
	var extra []*value
	if both {
		extra = []*value{tape.linear(attn, "add_q_proj", sizes.textRows()), tape.linear(attn, "add_k_proj", sizes.textRows()), tape.linear(attn, "add_v_proj", sizes.textRows())}
		tape.become(&extra[0], tape.ownRMSNorm(added, width))
		tape.become(&extra[1], tape.ownRMSNorm(added, width))
		tape.become(&query, tape.new(whole))
		tape.become(&key, tape.new(whole))
		tape.become(&val, tape.new(whole))
	}
	out := tape.attend(sizes.batch, attn.headCount(), sizes.image+sizes.text, sizes.image+sizes.text, sizes.dim)
	tape.drop(joined)
	if both {
		image = tape.linear(attn, "to_out.0", sizes.imageRows())
		text = tape.linear(attn, "to_add_out", sizes.textRows())
		tape.drop(out)
	} else {
		image, text = out, out.hold()
	}
	tape.drop(query, key, val)
	tape.drop(extra...)
	return image, text
}

// hunyuanSingle is HunyuanVideoSingleTransformerBlock.
func (tape *tape) hunyuanSingle(block module, sizes joint, image, text **value) {
	whole := sizes.rows() * sizes.dim
	residual := tape.new(whole)
	gate := tape.modulation(block, "norm.linear", sizes.batch)
	normed := tape.modulated(sizes.batch, sizes.rows(), sizes.dim)
	up := tape.linear(block, "proj_mlp", sizes.rows())
	active := tape.new(sizes.rows() * block.out("proj_mlp"))
	tape.drop(up)
	attended, attendedText := tape.hunyuanAttention(block.in("attn"), sizes, false)
	tape.become(&attended, tape.new(whole))
	joined := tape.new(sizes.rows() * block.inward("proj_out"))
	down := tape.linear(block, "proj_out", sizes.rows())
	hidden := tape.new(whole)
	tape.drop(down, joined)
	tape.become(&hidden, tape.new(whole))
	tape.drop(residual, gate, normed, active, attended, attendedText)
	tape.become(image, hidden)
	tape.become(text, hidden.hold())
}
